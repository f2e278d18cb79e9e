# error: runtime
# message: value is an integer of more than 64 bits: write str(x) or float(…)
10**30
