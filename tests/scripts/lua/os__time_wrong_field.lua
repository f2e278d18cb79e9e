-- error: runtime
-- message has: field 'month' is not an integer
os.time{ year = 2024, month = 1.5, day = 1 }
