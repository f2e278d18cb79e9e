-- prints: "[4,1,3,2]\t[2,4,1,3]\t[4,2,3,1]\n"
-- prints: "[\"B\",\"a\",\"b\"]\t[false,true]\t[1,2.5,10]\t[]\n"
-- value: [1, 2, 3, 4]
local rows = json.decode('[{"id":1,"s":"b","t":2.5},{"id":2,"s":"a","t":null},{"id":3,"s":"b","t":1.5},{"id":4,"s":"a","t":2.5}]')
print(list.map(list.sort_by(rows, "-t", "-id"), "id"), list.map(list.sort_by(rows, "s"), "id"),
  list.map(list.sort_by(rows, function(row) return row.s end, "-id"), "id"))
print(list.sort_by { "b", "a", "B" }, list.sort_by { true, false }, list.sort_by { 10, 2.5, 1 }, list.sort_by {})
return list.map(rows, "id")
