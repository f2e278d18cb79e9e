-- prints: "function: 0x000001\ttable: 0x000002\n"
local t = {}
t.t = t
print(print, t)
