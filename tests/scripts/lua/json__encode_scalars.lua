-- value: "1"
-- value: "\"x\""
-- value: "null"
-- value: "null"
-- value: "true"
-- value: "0.1"
-- value: "1.0"
return json.encode(1), json.encode("x"), json.encode(json.null), json.encode(nil), json.encode(true), json.encode(0.1), json.encode(1.0)
