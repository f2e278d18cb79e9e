-- value: {"$bytes": "7aCA"}
return "\xed\xa0\x80"
