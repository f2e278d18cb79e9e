-- attack: iterate over the raw parts of a sealed table
-- value: "nil nil nil"
return tostring(next(string)) .. " " .. tostring(next(tools)) .. " " .. tostring(rawget(docs, "search"))
