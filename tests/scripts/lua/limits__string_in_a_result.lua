-- limits: {"max_string": 1000}
-- value: false
-- value: "result_too_large"
-- calls: text
local ok, e = pcall(tools.text, 2000)
return ok, e.code
