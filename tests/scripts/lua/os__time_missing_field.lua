-- error: runtime
-- message has: field 'day' missing in date table
os.time{ year = 2024, month = 1 }
