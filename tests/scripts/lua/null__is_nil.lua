-- value: true
-- value: "nil"
-- value: "no"
return null == nil, type(null), null and "yes" or "no"
