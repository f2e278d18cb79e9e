-- error: limit depth
-- line: 12
-- message: value.inner.inner.inner.inner.inner.inner.inner.inner.inner.…er.inner.inner.inner is nested deeper than max_depth = 64
-- hint: return a flatter value: only the fields that are needed

local t = {}
local top = t
for i = 1, 100 do
  t.inner = {}
  t = t.inner
end
return top
