-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'replace')
-- hint: there is no method replace; write: (s:gsub("a", "b"))

local s = "abc"
return s:replace("a", "b")
