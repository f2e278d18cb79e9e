# attack: a number of a million digits, read in quadratic time
# error: runtime
# line: 5
# message: ValueError: Exceeds the limit (4300 digits) for integer string conversion: value has 1000000 digits; use sys.set_int_max_str_digits() to increase the limit
int("9" * 1000000)
