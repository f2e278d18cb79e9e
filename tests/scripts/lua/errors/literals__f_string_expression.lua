-- error: runtime
-- line: 7
-- message: attempt to call a nil value (global 'f')
-- hint: there are no f-strings: join the parts with ..

local a = 1
print(f"{a + 1} items")
