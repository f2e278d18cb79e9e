-- value: [[1, 97], [2, 233], [4, 98]]
local t = {}
for p, c in utf8.codes("aéb") do t[#t + 1] = { p, c } end
return t
