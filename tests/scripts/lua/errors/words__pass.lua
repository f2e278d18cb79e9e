-- error: syntax
-- line: 7
-- message: syntax error near 'end'
-- hint: Lua needs no pass: a block may be empty

if true then
  pass
end
