-- limits: {"max_output": 10}
-- prints: "0123456789"
-- error: limit output
print("0123456789abcdef")
