-- error: runtime
-- line: 9
-- message: attempt to index a nil value (global 'item')
-- hint: the local item of line 7 exists only inside its block: declare it before the block

for i = 1, 3 do
  local item = {n = i}
end
return item.n
