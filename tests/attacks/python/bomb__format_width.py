# attack: a format with a huge width
# error: limit memory
# line: 6
# message: the script needed more memory than max_memory = 67108864 bytes
# hint: process the data in parts and keep only what is needed
f"{1:>{10**11}}"
