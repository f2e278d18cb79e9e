-- value: true
-- value: 3
xpcall(function(a, b) return a + b end, print, 1, 2)
