-- attack: change a library with table.sort and table.remove
-- value: 0
-- value: false
-- value: "A"
table.sort(string)
return #string, pcall(table.remove, string), string.upper("a")
