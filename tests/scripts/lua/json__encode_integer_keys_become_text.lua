-- value: "{\"10\":\"x\"}"
json.encode({ [10] = "x" })
