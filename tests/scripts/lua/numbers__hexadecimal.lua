-- value: 255
-- value: 0.5
return 0xff, 0x.8p0
