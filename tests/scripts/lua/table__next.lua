-- value: null
-- value: "k"
return next({}), (next({ k = 1 }))
