# attack: a value nested deeper than the host could read
# error: limit depth
# message: value[0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][0][…0][0][0][0][0][0][0] is nested deeper than max_depth = 64
# hint: return a flatter value: only the fields that are needed
x = []
for i in range(100000):
    x = [x]
x
