-- error: runtime
-- message has: concurrency must be a whole number of at least 1
parallel.map({}, print, { concurrency = 0 })
