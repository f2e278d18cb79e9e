# error: runtime
# line: 5
# message: NameError: name 'total' is not defined
totl = 1
total
