# value: {"$bytes": "Yf8="}
b"a\xff"
