-- error: syntax
-- line: 7
-- message: '=' or 'in' expected near 'of'
-- hint: loop over a list with ipairs; write: for _, item in ipairs(list) do

local list = {1, 2}
for item of list do
  print(item)
end
