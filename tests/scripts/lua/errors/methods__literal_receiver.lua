-- error: runtime
-- line: 6
-- message: attempt to call a nil value (method 'includes')
-- hint: there is no method includes; for a string: ("abc"):find("b", 1, true) ~= nil; for a list, compare its elements in a loop

return ("abc"):includes("b")
