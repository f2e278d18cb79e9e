function double(n) return n * 2 end
-- next run
-- value: 14
double(7)
