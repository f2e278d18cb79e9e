-- attack: have tools return more than the script may hold
-- limits: {"max_memory": 4000000}
-- error: limit memory
-- calls: text text
local keep = {}
for i = 1, 10 do keep[i] = tools.text(2500000) end
