-- error: runtime
-- line: 7
-- message: attempt to call a nil value (field 'contains')
-- hint: there is no table.contains; use a loop: for _, item in ipairs(list) do if item == 2 then … end end

local list = {1, 2}
return table.contains(list, 2)
