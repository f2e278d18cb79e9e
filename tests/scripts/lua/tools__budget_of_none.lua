-- limits: {"max_tool_calls": 0}
-- error: limit calls
tools.add(1)
