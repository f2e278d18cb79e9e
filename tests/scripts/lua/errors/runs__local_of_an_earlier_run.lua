local rows = {1, 2}
shown = #rows
-- next run
-- error: runtime
-- line: 5
-- message: attempt to index a nil value (global 'rows')
-- hint: rows was a local of an earlier run, and locals do not persist: assign it there without local
return rows[1]
