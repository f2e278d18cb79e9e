-- attack: reach the metatable that all strings share through an index
-- prints: "a string has no field '__index'\na string has no field '__metatable'\na string has no field '__name'\n"
for _, name in ipairs{"__index", "__metatable", "__name"} do
  local ok, problem = pcall(function() return ("")[name] end)
  print((tostring(problem):gsub("^script[#%d]*:%d+: ", "")))
end
