# attack: catches the end of its calls, whatever class it has
# limits: {"max_tool_calls": 2, "timeout": 60}
# error: limit calls
# message: the script made more than max_tool_calls = 2 tool calls
# hint: a run may make 2 tool calls (max_tool_calls): ask for more with each call, or split the work over several runs
# calls: add add
# state: lost
while True:
    try:
        add(1)
    except BaseException:
        pass
