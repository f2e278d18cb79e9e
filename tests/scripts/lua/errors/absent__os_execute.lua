-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'execute')
-- hint: there is no os.execute; programs cannot be started: use the tools; os has only os.time, os.date, os.clock and os.difftime here

os.execute("ls")
