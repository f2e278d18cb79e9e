# attack: fills the memory by doubling a string
# limits: {"max_memory": 16000000}
# error: limit memory
# line: 9
# message: the script needed more memory than max_memory = 16000000 bytes
# hint: process the data in parts and keep only what is needed
x = "a"
while True:
    x += x
