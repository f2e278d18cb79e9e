-- value: "a,b,c"
-- value: "bc"
-- value: "12.5"
return table.concat({ "a", "b", "c" }, ","), table.concat({ "a", "b", "c" }, "", 2), table.concat({ 1, 2.5 })
