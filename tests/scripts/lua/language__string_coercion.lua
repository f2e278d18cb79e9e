-- value: 15
-- value: 2.5
return "10" + 5, "5" / 2
