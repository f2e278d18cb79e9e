-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'round')
-- hint: there is no math.round; write: math.floor(2.5 + 0.5)

return math.round(2.5)
