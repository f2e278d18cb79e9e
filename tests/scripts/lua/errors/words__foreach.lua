-- error: syntax
-- line: 7
-- message: syntax error near 'item'
-- hint: loop over a list with: for _, item in ipairs(list) do … end

local list = {1, 2}
foreach item in list do
  print(item)
end
