-- attack: run bytecode that a script made in a string
-- value: null
local code = "\27Lua\84\0\25\147\r\n\26\n\4\8\8xV\0\0\0\0\0\0\0\0\0\0\0(w@\1\6@x"
return load and load(code)
