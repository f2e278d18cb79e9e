-- value: "library 'string'"
-- value: "library 'tools'"
return tostring(string), tostring(tools)
