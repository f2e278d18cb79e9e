# attack: a number of a million digits, written in quadratic time
# error: runtime
# line: 5
# message: ValueError: Exceeds the limit (4300 digits) for integer string conversion; use sys.set_int_max_str_digits() to increase the limit
str(1 << 10000000)
