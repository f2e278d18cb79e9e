# attack: a replacement that multiplies the text
# error: limit memory
# line: 6
# message: the script needed more memory than max_memory = 67108864 bytes
# hint: process the data in parts and keep only what is needed
("a" * 100000).replace("a", "b" * 100000)
