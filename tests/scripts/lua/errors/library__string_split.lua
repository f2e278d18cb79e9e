-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'split')
-- hint: there is no string.split; use a loop: for part in ("a;b"):gmatch("[^;]+") do … end

return string.split("a;b", ";")
