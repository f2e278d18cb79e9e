# value: ["rate_limited", "busy", "fail", true, {"seen": [1, 2]}, "fail: busy"]
# calls: fail
try:
    fail(message="busy", code="rate_limited", retryable=True)
except ToolError as e:
    result = [e.code, e.message, e.tool, e.retryable, e.data, str(e)]
result
