-- error: runtime
-- line: 8
-- message: a string has no element 1
-- hint: strings cannot be indexed; write: s:sub(i, i)

local s = "abc"
for i = 1, #s do
  print(s[i])
end
