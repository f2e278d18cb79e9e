-- error: runtime
-- message has: at once
parallel{ function() tools.fail() end, function() error("at once") end }
