-- error: runtime
json.decode("[\0001\000]\000")
