local n = 0
function count() n = n + 1 return n end
-- next run
-- value: 1
-- value: 2
return count(), count()
-- next run
-- value: 3
count()
