# value: "broken"
# calls: fail
try:
    fail()
except Exception as problem:
    result = failure(problem)["code"]
result
