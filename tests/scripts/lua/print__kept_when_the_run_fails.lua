-- prints: "before\n"
-- error: runtime
print("before")
error("x")
