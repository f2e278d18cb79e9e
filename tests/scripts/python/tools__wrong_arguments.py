# check: off
# error: tool
# line: 6
# message: "invalid arguments for add:\n- a: missing, expected integer\n- c: unknown parameter\nvalid parameters: a* (integer), b (integer, default 1)"
# calls: add
add(c=1)
