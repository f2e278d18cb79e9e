-- value: -1
-- value: -62135596800
return os.time{ year = 1969, month = 12, day = 31, hour = 23, min = 59, sec = 59 }, os.time{ year = 1, month = 1, day = 1, hour = 0 }
