-- value: "12"
-- value: "1.5x"
return 1 .. 2, 1.5 .. "x"
