-- attack: lose what was printed by getting killed right afterwards
-- isolation: process
-- limits: {"timeout": 0.3}
-- error: limit time
-- state: lost
-- prints: "one\ntwo\nthree\n"
print("one")
print("two")
print("three")
return (("a"):rep(40)):find(("a-"):rep(12) .. "b")
