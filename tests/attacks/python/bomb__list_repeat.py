# attack: a list of a trillion elements
# error: limit memory
# line: 6
# message: the script needed more memory than max_memory = 67108864 bytes
# hint: process the data in parts and keep only what is needed
[0] * 10**12
