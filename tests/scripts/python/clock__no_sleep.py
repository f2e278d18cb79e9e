# error: check
# line: 6
# message: scripts cannot sleep
# hint: go on, and look again in a later run
import time
time.sleep(1)
