-- features: metatables
-- value: 3
-- value: true
-- value: true
-- value: "v"
-- value: 7
-- value: 42
local mt = {}
mt.__add = function(a, b) return a.n + b.n end
mt.__eq = function(a, b) return a.n == b.n end
mt.__lt = function(a, b) return a.n < b.n end
mt.__tostring = function() return "v" end
mt.__len = function() return 7 end
mt.__call = function(_, x) return x end
local function V(n) return setmetatable({ n = n }, mt) end
return V(1) + V(2), V(1) == V(1), V(1) < V(2), tostring(V(1)), #V(1), V(1)(42)
