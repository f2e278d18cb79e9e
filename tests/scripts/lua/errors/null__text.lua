-- error: runtime
-- line: 7
-- message: attempt to concatenate a nil value (field 'name')
-- hint: item.name is nil; where it may be missing write: (item.name or "")

local item = json.decode('{"name": null}')
return "name: " .. item.name
