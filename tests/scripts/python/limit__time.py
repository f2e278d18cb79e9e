# limits: {"timeout": 0.5}
# error: limit time
# message: the script ran longer than timeout = 0.5 seconds
# hint: do less in one run, or split the work over several runs
while True:
    pass
# next run
# value: 1
1
