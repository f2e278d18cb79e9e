-- error: runtime
-- message has: parallel.map has the options 'concurrency' and 'settle', not 'limit'
parallel.map({}, print, { limit = 2 })
