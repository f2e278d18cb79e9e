-- value: "1"
-- value: "1.0"
-- value: "-0.0"
-- value: "1e+100"
-- value: "inf"
return tostring(1), tostring(1.0), tostring(-0.0), tostring(1e100), tostring(math.huge)
