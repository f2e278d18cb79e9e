-- error: syntax
-- line: 7
-- message: <eof> expected near 'print'
-- hint: return must be the last statement of its block: nothing may follow it

return 1
print(2)
