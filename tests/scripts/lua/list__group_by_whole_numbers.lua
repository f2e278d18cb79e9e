-- value: ["{\"1\":2,\"2\":1}", "{\"1\":[{\"n\":1}]}", 2, [1, 2], "{\"1\":2,\"2\":1,\"x\":5}"]
-- The result has names, also where they are 1, 2, 3: it is an object, not a list.
local counts = list.count_by({ { n = 1 }, { n = 2 }, { n = 1 } }, "n")
local text = json.encode(counts)
local groups = list.group_by({ { n = 1 } }, "n")
local keys = list.keys(counts)
local two = counts[1]
counts.x = 5
return { text, json.encode(groups), two, keys, json.encode(counts) }
