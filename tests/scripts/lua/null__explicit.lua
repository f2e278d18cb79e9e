-- value: null
-- value: {"a": null}
-- value: [1, null, null]
-- value: ["userdata", "null", true, false, true]
return json.null, { a = json.null }, { 1, json.null, json.null },
  { type(json.null), tostring(json.null), json.null == json.null, json.null == nil, json.null and true }
