-- value: 1
-- value: null
-- value: 3
-- value: null
return table.unpack(json.decode('[1, null, 3, null]'))
