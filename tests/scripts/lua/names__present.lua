-- value: []
local missing = array{}
local expected = {
  base = "assert error ipairs next rawequal rawget rawlen select tonumber type pairs pcall print rawset tostring xpcall array",
  string = "byte char find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper",
  table = "concat insert move pack remove sort unpack",
  math = "abs acos asin atan ceil cos deg exp floor fmod log max min modf rad random randomseed sin sqrt tan tointeger type ult",
  utf8 = "char codepoint codes len offset",
  os = "clock date difftime time",
  json = "encode decode parse stringify",
  docs = "search describe",
  parallel = "map settle",
}
for space, names in pairs(expected) do
  for name in names:gmatch("%S+") do
    local where = space == "base" and _G or _G[space]
    if type(where[name]) ~= "function" then missing[#missing + 1] = space .. "." .. name end
  end
end
return missing
