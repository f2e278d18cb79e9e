# limits: {"max_output": 64}
# prints: "hello\nhello\nhello\nhello\nhello\nhello\nhello\nhello\nhello\nhello\nhell"
# error: limit output
# message: the script printed more than max_output = 64 bytes
# hint: print less: return the result as a value and print only a summary
for i in range(100):
    print("hello")
# next run
# value: 1
1
