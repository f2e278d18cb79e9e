# limits: {"max_array": 3}
# error: limit array
# message: value.rows has 4 elements; max_array is 3
# hint: return less: filter or summarise the data in the script, and return the result
{"rows": list(range(4))}
