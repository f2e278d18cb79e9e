-- error: syntax
-- line: 7
-- message: '=' or 'in' expected near 'of'
-- hint: a loop over a list is written with ipairs; write: for _, item in ipairs(list) do

local list = {1, 2}
for item of list do
  print(item)
end
