# limits: {"max_depth": 8}
# error: limit depth
# message: value[0][0][0][0][0][0][0][0] is nested deeper than max_depth = 8
# hint: return a flatter value: only the fields that are needed
[[[[[[[[[1]]]]]]]]]
