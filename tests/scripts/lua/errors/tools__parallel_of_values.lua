-- error: runtime
-- line: 6
-- message: parallel expects functions; item 1 is a number. Write: function() return tools.name{...} end
-- calls: add add

local list = parallel{tools.add{a = 1}, tools.add{a = 2}}
return list
