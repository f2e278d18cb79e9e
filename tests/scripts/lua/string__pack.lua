-- value: 4
-- value: 258
-- value: 8
return #string.pack("<i4", 258), (string.unpack("<i4", string.pack("<i4", 258))), string.packsize("i8")
