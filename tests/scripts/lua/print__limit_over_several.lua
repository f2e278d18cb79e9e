-- limits: {"max_output": 5}
-- prints: "ab\ncd"
-- error: limit output
print("ab")
print("cd")
print("never")
