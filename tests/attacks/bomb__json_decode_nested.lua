-- attack: overflow the parser's stack with nested JSON
-- value: 0
local done = 0
for _, n in ipairs{ 500, 1000, 5000, 100000, 1000000 } do
  if pcall(json.decode, ("["):rep(n)) then done = done + 1 end
  if pcall(json.decode, ('{"a":'):rep(n)) then done = done + 1 end
  if n > 900 and pcall(json.decode, ("["):rep(n) .. ("]"):rep(n)) then done = done + 1 end
end
return done
