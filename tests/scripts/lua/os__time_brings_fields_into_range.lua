-- value: {"day": 1, "hour": 1, "isdst": false, "min": 0, "month": 3, "sec": 0, "wday": 6, "yday": 61, "year": 2024}
local t = { year = 2023, month = 14, day = 30, hour = 0, min = 60, sec = 0 }
os.time(t)
return t
