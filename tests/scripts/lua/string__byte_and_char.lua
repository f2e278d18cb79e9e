-- value: 65
-- value: "AZ"
-- value: [104, 105]
return ("A"):byte(), string.char(65, 90), { ("hi"):byte(1, -1) }
