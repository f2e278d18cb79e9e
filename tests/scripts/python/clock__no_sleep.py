# error: check
# line: 6
# message: there is no time.sleep
# hint: write: sleep(seconds)
import time
time.sleep(1)
