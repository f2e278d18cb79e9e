-- error: runtime
-- line: 7
-- message: attempt to call a nil value (method 'replace')
-- hint: there is no method replace; write: (s:gsub((old:gsub("%p", "%%%0")), new))

local s, old, new = "1.5", ".", ","
return s:replace(old, new)
