# value: [true, true, true]
import time, datetime
a = time.time()
b = datetime.datetime.now().timestamp()
[abs(a - b) < 5, time.monotonic() >= 0, datetime.date.today().year >= 2024]
