-- error: runtime
-- line: 7
-- message: attempt to concatenate a null value (field 'name')
-- hint: item.name is json.null, which is only for sending a null: write nil for a missing value

local item = { name = json.null }
return "name: " .. item.name
