-- attack: reach the metatable that all strings share through an index
-- value: "nil nil nil"
return tostring(("").__index) .. " " .. tostring(("").__metatable) .. " " .. tostring(("").__name)
