-- attack: have string.pack make large paddings
-- error: limit memory
return (pcall(string.pack, "!16 Xi16 c99999999999999999999", "x"))
