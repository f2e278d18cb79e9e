-- value: {"$bytes": "/wBB"}
-- value: {"a": [{"$bytes": "gIE="}]}
return "\255\0A", { a = { "\128\129" } }
