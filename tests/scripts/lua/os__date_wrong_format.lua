-- error: runtime
-- message has: invalid conversion specifier
os.date("%Ez")
