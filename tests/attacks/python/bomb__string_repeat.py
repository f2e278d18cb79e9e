# attack: asks for more memory than there is in one step
# error: limit memory
# line: 6
# message: the script needed more memory than max_memory = 67108864 bytes
# hint: process the data in parts and keep only what is needed
"a" * 10**12
