-- value: [6.5, 10, 0]
-- value: [3, 1, 1, 4]
-- value: null
-- value: [1, 2]
-- value: [1, 2, "1", {"a": 1}, [1], null]
local rows = json.decode('[{"id":1,"s":"b","t":2.5},{"id":2,"s":"a","t":null},{"id":3,"s":"b","t":1.5},{"id":4,"s":"a","t":2.5}]')
return { list.sum(rows, "t"), list.sum { 1, 2, 3, 4 }, list.sum {} },
  { list.min_by(rows, "t").id, list.max_by(rows, "t").id, list.min_by(rows, "id").id, list.max_by(rows, function(r) return r.id end).id },
  list.max_by({}, "t"),
  list.map(list.unique(rows, "s"), "id"),
  list.unique(json.decode('[1, 1, 2, "1", {"a": 1}, {"a": 1}, [1], null, 1.0, null]'))
