-- check: off
-- error: runtime
-- line: 5
-- message: list.map: item 1 is a number, not an object with the field 'x'
return list.map({ 1 }, "x")
