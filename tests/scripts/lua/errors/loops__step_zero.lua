-- error: runtime
-- line: 6
-- message: 'for' step is zero
-- hint: the step of a loop must not be 0

for i = 1, 10, 0 do print(i) end
