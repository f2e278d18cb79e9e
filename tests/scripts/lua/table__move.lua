-- value: [1, 1, 2, 3]
-- value: [1, 2]
return table.move({ 1, 2, 3 }, 1, 3, 2), table.move({ 1, 2 }, 1, 2, 1, {})
