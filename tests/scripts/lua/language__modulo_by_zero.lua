-- error: runtime
-- message has: attempt to perform 'n%
return 1 % 0
