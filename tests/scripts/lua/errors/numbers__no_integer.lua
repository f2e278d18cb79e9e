-- error: runtime
-- line: 6
-- message: number has no integer representation
-- hint: an integer is needed: use math.floor(x) or x // 1

return 2.5 | 1
