# limits: {"max_string": 64}
# error: limit string
# message: value[0] is a string of 65 bytes; max_string is 64
# hint: make shorter strings: work on parts, or keep the parts in a list
["x" * 65]
