-- prints: "1\n2\n"
-- value: [null, null]
return array(parallel{ function() print(1) end, function() print(2) end })
