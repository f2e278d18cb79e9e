# attack: goes on in finally when its calls are spent
# limits: {"max_tool_calls": 1}
# prints: "finally\n"
# error: limit calls
# message: the script made more than max_tool_calls = 1 tool calls
# hint: a run may make 1 tool call (max_tool_calls): ask for more with each call, or split the work over several runs
# calls: add
try:
    add(1)
    add(2)
finally:
    print("finally")
