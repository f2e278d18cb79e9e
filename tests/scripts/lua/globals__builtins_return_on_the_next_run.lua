-- value: "changed"
print = function() end
tools = nil
string = { upper = function() return "changed" end }
return string.upper("x")
-- next run
-- value: "X"
-- value: 3
-- prints: "hi\n"
-- calls: add
print("hi")
return string.upper("x"), tools.add(2)
