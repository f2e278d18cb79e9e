-- value: false
-- value: "no"
-- value: "gone"
-- value: "fail"
-- value: true
-- value: [1, 2]
-- value: "fail: no"
-- calls: fail
local ok, e = pcall(tools.fail, { message = "no", code = "gone", retryable = true })
return ok, e.message, e.code, e.tool, e.retryable, e.data.seen, tostring(e)
