-- attack: spend operations in callbacks that C calls
-- limits: {"max_operations": 20000, "timeout": 5}
-- error: limit operations
while true do
  pcall(string.gsub, ("x"):rep(100), "x", function() for i = 1, 100 do end end)
  pcall(table.sort, { 3, 2, 1, 5, 4 }, function(a, b) for i = 1, 100 do end return a < b end)
end
