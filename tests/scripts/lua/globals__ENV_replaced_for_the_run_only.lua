-- error: runtime
_ENV = {}
x = 1
print("not there")
-- next run
-- value: "function"
-- value: null
return type(print), x
