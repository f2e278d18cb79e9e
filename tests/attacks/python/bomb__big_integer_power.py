# attack: a power with more digits than memory
# error: limit memory
# line: 6
# message: the script needed more memory than max_memory = 67108864 bytes
# hint: process the data in parts and keep only what is needed
10 ** 10 ** 10
