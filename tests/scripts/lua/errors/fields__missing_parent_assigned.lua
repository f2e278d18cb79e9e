-- error: runtime
-- line: 7
-- message: attempt to index a nil value (field 'jan')
-- hint: totals.jan is nil; make it a table first: totals.jan = {}

local totals = {}
totals.jan.sum = 5
