-- value: "HELLO"
-- value: 5
-- value: "olleh"
-- value: "ell"
-- value: "abab"
local s = "hello"
return s:upper(), s:len(), s:reverse(), s:sub(2, 4), ("ab"):rep(2)
