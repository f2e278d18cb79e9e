-- error: runtime
-- line: 6
-- message: tools.add: argument[1] is a library, which cannot leave the script
-- hint: tools are called with a dot, not with a colon; write: tools.add{…}

return tools:add{a = 1}
