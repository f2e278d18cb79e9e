-- value: [[], [], {"late": [], "names": {}, "n": 0}, [], [], {}, [1], [], {}, []]
-- A table made with {} is a list, also when nothing was appended: the script says so with t[#t + 1] = x or table.insert(t, x).
local out, more = {}, {}
local report = { late = {}, names = {}, n = 0 }
local other = {}
kept = {   }
local seen = {}
local full = {} full[#full + 1] = 1
local first, plain,
  last = {}, { } , {}
for _, x in ipairs({}) do
  out[#out + 1] = x
  table.insert(more, x)
  report.late[#report.late+1] = x
  other[# other + 1] = x
  table.insert(kept, 1, x)
  seen[x] = true
  first [ #first + 1 ] = x
  table.insert (last , 'plain[#plain + 1] =')
end
return { out, more, report, other, kept, seen, full, first, plain, last }
