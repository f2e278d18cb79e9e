-- value: "nil"
-- value: "true"
-- value: "x"
-- value: "null"
return tostring(nil), tostring(true), tostring("x"), tostring(json.null)
