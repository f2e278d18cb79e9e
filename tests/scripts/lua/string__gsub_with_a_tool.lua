-- value: "2 3 4"
-- calls: add add add
return (("1 2 3"):gsub("%d", function(d) return tools.add(math.tointeger(d)) end))
