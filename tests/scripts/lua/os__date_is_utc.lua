-- value: "1970-01-01 00:00:00"
-- value: "2001-09-09T01:46:40Z"
-- value: 1970
-- value: false
return os.date("%Y-%m-%d %H:%M:%S", 0), os.date("!%Y-%m-%dT%H:%M:%SZ", 1000000000), os.date("*t", 0).year, os.date("*t", 0).isdst
