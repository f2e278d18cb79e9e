# value: "done"
# prints: "{\"a\":1}\n"
show({"a": 1})
progress(1, 2, "half")
"done"
