# error: runtime
# message: value is NaN (not a number), which is not a JSON number
float("nan")
