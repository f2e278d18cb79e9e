# attack: a small value that unfolds to a huge one
# limits: {"timeout": 10}
# error: limit array
# message: value[0][0][0][1][3][75] and what was sent before have more than 1048576 elements
# hint: return less: filter or summarise the data in the script, and return the result
x = [0] * 100
for i in range(6):
    x = [x] * 100
x
