-- attack: make more calls than allowed inside pages, and catch what ends the run
-- limits: {"max_tool_calls": 3}
-- error: limit calls
-- calls: rows rows rows
while true do pcall(pages, tools.rows, { count = 1 }) end
