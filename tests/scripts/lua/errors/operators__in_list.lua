-- error: syntax
-- line: 7
-- message: 'then' expected near 'in'
-- hint: Lua has no `in` operator; test a key with t[key] ~= nil, a value with a loop: for _, v in ipairs(list) do if v == x then … end end

local names = {"a", "b"}
if "a" in names then return true end
