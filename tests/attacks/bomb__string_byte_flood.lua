-- attack: flood the stack with string.byte
-- value: false
return (pcall(string.byte, ("x"):rep(9000000), 1, -1))
