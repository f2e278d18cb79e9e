-- limits: {"max_output": 10}
-- prints: "012345678\n"
print("012345678")
