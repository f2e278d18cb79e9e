# attack: a native loop that is longer than the time limit
# limits: {"timeout": 1}
# error: limit time
# message: the script ran longer than timeout = 1 seconds
# hint: do less in one run, or split the work over several runs
sum(range(10**15))
