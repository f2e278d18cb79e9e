-- error: runtime
-- line: 5
-- message: the table 'tools' is read-only: keep 'mine' in a variable of your own

tools.mine = 5
