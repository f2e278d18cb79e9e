# limits: {"max_tool_calls": 1}
# error: limit calls
# message: the script made more than max_tool_calls = 1 tool calls
# hint: a run may make 1 tool call (max_tool_calls): ask for more with each call, or split the work over several runs
# calls: add
done = []
for i in range(5):
    try:
        add(i)
    except Exception:
        done.append(i)
