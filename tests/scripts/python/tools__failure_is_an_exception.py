# error: tool
# line: 6
# message: no such row
# calls: add fail
add(1)
fail(message="no such row", code="not_found")
