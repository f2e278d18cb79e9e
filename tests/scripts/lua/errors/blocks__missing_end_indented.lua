-- error: syntax
-- line: 13
-- message: 'end' expected (to close 'function' at line 6) near <eof>
-- hint: the for of line 7 seems to have no end: the end of line 10 closes it

local function total(list)
  for _, x in ipairs(list) do
    print(x)

end

return total({1})
