-- limits: {"max_tool_calls": 0}
-- value: "table"
type(docs.search("add"))
