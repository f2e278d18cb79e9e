-- value: false
-- value: "inner"
-- value: false
-- value: "outer"
local ok, e, ok2, e2
ok2, e2 = pcall(function()
  ok, e = pcall(error, "inner", 0)
  error("outer", 0)
end)
return ok, e, ok2, e2
