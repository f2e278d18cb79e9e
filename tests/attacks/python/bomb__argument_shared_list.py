# attack: the same as the argument of a tool
# limits: {"timeout": 10}
# error: limit array
# message: argument.value[0][0][0][1][3][75] and what was sent before have more than 1048576 elements
# hint: send less in one call: pass the data in parts
x = [0] * 100
for i in range(6):
    x = [x] * 100
echo(value=x)
