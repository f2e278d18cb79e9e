# limits: {"max_tool_calls": 2}
# error: limit calls
# message: the script made more than max_tool_calls = 2 tool calls
# hint: a run may make 2 tool calls (max_tool_calls): ask for more with each call, or split the work over several runs
# calls: add add
for i in range(5):
    add(i)
# next run
# value: 2
# calls: add
add(1)
