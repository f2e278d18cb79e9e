-- value: 0
-- value: 86399
-- value: 951782400
-- value: 1709208000
-- value: 4107542400
return os.time{ year = 1970, month = 1, day = 1, hour = 0 },
  os.time{ year = 1970, month = 1, day = 1, hour = 23, min = 59, sec = 59 },
  os.time{ year = 2000, month = 2, day = 29, hour = 0 },
  os.time{ year = 2024, month = 2, day = 29 },
  os.time{ year = 2100, month = 3, day = 1, hour = 0 }
