-- value: "a,a,a"
-- value: ""
-- value: "1-1"
-- value: "1313"
-- value: ""
-- value: ""
return ("a"):rep(3, ","), ("a"):rep(0), string.rep(1, 2, "-"), string.rep("13", 2), ("a"):rep(-5), (""):rep(1e15)
