-- error: runtime
-- message has: parallel expects functions; item 2 is a number
parallel{ function() end, 5 }
