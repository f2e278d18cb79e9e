# attack: a shift by a trillion bits
# error: limit memory
# line: 6
# message: the script needed more memory than max_memory = 67108864 bytes
# hint: process the data in parts and keep only what is needed
1 << 10**12
