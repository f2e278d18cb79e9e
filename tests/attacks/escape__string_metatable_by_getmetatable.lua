-- attack: take the metatable of strings with getmetatable
-- features: metatables
-- value: null
return getmetatable("")
