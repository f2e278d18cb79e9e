-- value: "Lua 5.4"
-- value: 3.141592653589793
-- value: true
-- value: true
-- value: "number"
return _VERSION, math.pi, utf8.charpattern == "[\0-\x7F\xC2-\xFD][\x80-\xBF]*", json.null == json.null, type(math.huge)
