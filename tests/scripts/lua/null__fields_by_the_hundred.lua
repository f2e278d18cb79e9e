-- value: 300
-- value: 0
-- value: true
local parts = {}
for i = 1, 300 do parts[i] = '"k' .. i .. '":null' end
local r = json.decode("{" .. table.concat(parts, ",") .. "}")
local _, before = json.encode(r):gsub("null", "")
for i = 1, 300 do r["k" .. i] = i end
local _, after = json.encode(r):gsub("null", "")
return before, after, r.k300 == 300
