-- value: 10
-- value: 255
-- value: null
-- value: 0.5
-- value: null
return tonumber("10"), tonumber("ff", 16), tonumber("x"), tonumber(" .5 "), tonumber("")
