-- value: [{}, {}, {}, "out = {}", "[[out = {}]]", [{}], {"a": 1}, 0]
local a, b, c, out = {}, {}, {}, "out = {}" -- a[#a + 1] = 1
local text = "[[out = {}]]" --[==[ table.insert(b, 1) ]==]
if c[#c] == 1 then c = '[#c + 1] = 1' end
local nested = {{}}
if #nested > 5 then nested[#nested + 1] = 1 end
local both = {}
if false then both[#both + 1] = 1 end
both.a = 1
return { a, b, c, out, text, nested, both, select("#", ...) }
