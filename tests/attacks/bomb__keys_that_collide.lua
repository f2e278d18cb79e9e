-- attack: return a table of integer keys chosen so that the host's dict looks at tens of thousands of places for each
-- limits: {"timeout": 30}
-- state: lost
-- error: crashed
-- message has: keys
-- Python puts an integer at its own low bits, then goes on to 5 i + 1 + (what is left of its high bits). These fill an
-- arc of that walk with keys at their own places, and then add keys whose walk enters the arc at its beginning.
local bits = 17
local size, mask = 1 << bits, (1 << bits) - 1
local table_, place, at = {}, {}, 0
for step = 1, size // 2 do
  table_[at], place[at] = 0, step
  at = (5 * at + 1) & mask
end
local room = size * 2 // 3 - size // 2 - 10
local more = {}
for high = 1, 63 do
  for low in pairs(place) do
    local key = low + high * size
    local index, rest = key & mask, key
    while rest ~= 0 do
      rest = rest >> 5
      index = (index * 5 + rest + 1) & mask
      if not place[index] then break end
    end
    if rest == 0 and place[index] and place[index] < size // 4 and #more < room then more[#more + 1] = key end
  end
  if #more >= room then break end
end
for _, key in ipairs(more) do table_[key] = 0 end
return table_
