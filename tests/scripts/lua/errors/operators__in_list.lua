-- error: syntax
-- line: 7
-- message: 'then' expected near 'in'
-- hint: Lua has no `in` test; for a key write: t[key] ~= nil; for a value loop over the list: for _, v in ipairs(list) do if v == x then … end end

local names = {"a", "b"}
if "a" in names then return true end
