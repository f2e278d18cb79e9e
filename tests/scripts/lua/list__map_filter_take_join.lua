-- value: [10, 20]
-- value: [null, 2]
-- value: [1, 3, 4]
-- value: [[1], [], [1, 2, 3, 4]]
-- value: "1, 2.5, x, {\"a\":1}, null"
-- value: "b-a-b-a"
-- value: [["a", "b"], [2, 1], ["x", 7]]
local rows = json.decode('[{"id":1,"s":"b","t":2.5},{"id":2,"s":"a","t":null},{"id":3,"s":"b","t":1.5},{"id":4,"s":"a","t":2.5}]')
return list.map({ 1, 2 }, function(n, index) return n * 10 end), list.map({ { b = 1 }, { a = 2 } }, "a"),
  list.map(list.filter(rows, "t"), "id"),
  { list.map(list.take(rows, 1), "id"), list.take(rows, 0), list.map(list.take(rows, 9), "id") },
  list.join(json.decode('[1, 2.5, "x", {"a": 1}, null]')), list.join(rows, "-", "s"),
  { list.keys { b = 1, a = 2 }, list.values { b = 1, a = 2 }, list.map({ { "x", 1 }, { 7 } }, 1) }
