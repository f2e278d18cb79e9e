-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'range')
-- hint: Lua counts in the loop's header; write: for i = 2, 5 - 1 do

for i in range(2, 5) do
  print(i)
end
