-- value: 3
-- value: 6
-- value: 9
-- calls: add add add
return tools.add{ a = 1, b = 2 }, tools.add(5), tools.add(4, 5)
