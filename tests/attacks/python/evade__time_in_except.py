# attack: catches the end of its time
# limits: {"timeout": 1}
# error: limit time
# message: the script ran longer than timeout = 1 seconds
# hint: do less in one run, or split the work over several runs
while True:
    try:
        while True:
            pass
    except BaseException:
        pass
