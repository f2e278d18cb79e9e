-- error: runtime
-- message has: index is nil
local t = {}
t[nil] = 1
