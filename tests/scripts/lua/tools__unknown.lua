-- check: off
-- error: runtime
tools.ad{ a = 1 }
