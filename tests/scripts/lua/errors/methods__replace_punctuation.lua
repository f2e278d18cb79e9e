-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'replace')
-- hint: there is no method replace; write: (s:gsub("%.", ","))

local s = "1.5"
return s:replace(".", ",")
