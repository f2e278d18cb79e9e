# attack: an iterator without end in a native loop
# limits: {"timeout": 2, "max_memory": 16000000}
# error: limit memory
# line: 8
# message: the script needed more memory than max_memory = 16000000 bytes
# hint: process the data in parts and keep only what is needed
import itertools
list(map(str, itertools.count()))
