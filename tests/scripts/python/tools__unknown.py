# check: off
# error: runtime
# line: 5
# message: AttributeError: module 'tools' has no attribute 'nothing'
tools.nothing(1)
