-- limits: {"max_array": 10}
-- value: "result_too_large"
-- calls: rows
local _, e = pcall(tools.rows, 11)
return e.code
