-- value: true
-- value: false
-- value: false
-- value: "null"
-- value: "userdata"
return null == null, null == nil, null == false, tostring(null), type(null)
