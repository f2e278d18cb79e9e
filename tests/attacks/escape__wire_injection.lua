-- attack: break out of the JSON that carries arguments
-- value: true
-- calls: echo echo echo echo echo
local ok = true
for _, text in ipairs{ '"],["', '\\"', '"}]}', "\1b\1m\1t", '\\u0000",1' } do
  ok = ok and tools.echo{ value = { [text] = text, list = { text } } }.list[1] == text
end
return ok
