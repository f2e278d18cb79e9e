# attack: a list that grows without end
# limits: {"max_memory": 8000000}
# error: limit memory
# message: the script needed more memory than max_memory = 8000000 bytes
# hint: process the data in parts and keep only what is needed
# state: either
def grow():
    x = []
    while True:
        x.append(["y", "y" * 100])


grow()
