function first_name(user)
  return user.name.first
end
-- next run
-- error: runtime
-- line: 6
-- message: attempt to index a nil value (field 'name')
-- hint: user.name is nil; check it before using its fields: if user.name then … end

local name = first_name({})
return name
