-- attack: return a table whose keys are longer than any string may be
-- limits: {"max_string": 1000}
-- error: limit string
local key = ("k"):rep(1000)
return { [key .. "x"] = 1 }
