-- error: runtime
-- line: 4
-- message has: attempt to compare
table.sort(json.decode('[3, null, 1]'))
