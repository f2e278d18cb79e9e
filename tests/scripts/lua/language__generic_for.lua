-- value: "a=1;b=2;c=3;"
local s = ""
for i, v in ipairs({ "a", "b", "c" }) do s = s .. v .. "=" .. i .. ";" end
return s
