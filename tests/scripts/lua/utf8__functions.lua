-- value: 5
-- value: "é漢"
-- value: [104, 233]
-- value: 2
-- value: null
-- value: 2
local len, at = utf8.len("a\255")
return utf8.len("grüße"), utf8.char(233, 28450), { utf8.codepoint("hé", 1, -1) }, utf8.offset("hé", 2), len, at
