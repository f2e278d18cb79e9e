-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'io')
-- hint: there are no files here: use print for output and the tools for data

local file = io.open("/etc/passwd")
return file
