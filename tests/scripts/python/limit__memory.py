# limits: {"max_memory": 4000000}
# error: limit memory
# message: the script needed more memory than max_memory = 4000000 bytes
# hint: process the data in parts and keep only what is needed
# state: lost
x = []
while True:
    x.append("a" * 1000)
