-- value: "ab"
"a" .. "b"
