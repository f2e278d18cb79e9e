-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'require')
-- hint: there are no modules here: string, table, math, utf8, os, json, docs and tools are already there

local http = require("http")
return http
