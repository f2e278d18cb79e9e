# attack: catches the end of its memory
# limits: {"max_memory": 8000000, "timeout": 60}
# error: limit memory
# message: the script needed more memory than max_memory = 8000000 bytes
# hint: process the data in parts and keep only what is needed
# state: either
x = []
while True:
    try:
        while True:
            x.append("a" * 10000)
    except BaseException:
        pass
