-- attack: print one line larger than memory should hold twice
-- limits: {"max_output": 4}
-- error: limit output
-- prints: "xxxx"
print(("x"):rep(9000000), ("y"):rep(9000000))
