-- error: tool
-- message has: it failed
-- calls: fail add
parallel{ function() tools.fail() end, function() tools.add(1) end }
