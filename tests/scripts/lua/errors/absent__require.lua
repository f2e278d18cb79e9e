-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'require')
-- hint: modules cannot be loaded here: string, table, math, utf8, os, json, docs and tools are already available

local http = require("http")
return http
