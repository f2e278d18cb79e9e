-- value: "[1]"
-- value: [1]
return json.stringify({ 1 }), json.parse("[1]")
