# value: {"d": "2024-02-03", "n": 120.0, "s": [1, 2, 3], "t": [1, 2]}
import datetime
{"t": (1, 2), "s": {3, 1, 2}, "d": datetime.date(2024, 2, 3), "n": datetime.timedelta(minutes=2)}
