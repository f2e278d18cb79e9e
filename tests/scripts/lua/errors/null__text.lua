-- error: runtime
-- line: 7
-- message: attempt to concatenate a null value (field 'name')
-- hint: item.name is JSON null: check it first with ~= null

local item = json.decode('{"name": null}')
return "name: " .. item.name
