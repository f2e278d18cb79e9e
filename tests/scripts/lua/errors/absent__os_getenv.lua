-- error: runtime
-- line: 6
-- message: attempt to call a nil value (field 'getenv')
-- hint: there is no os.getenv; environment variables are not reachable; os has only os.time, os.date, os.clock and os.difftime here

return os.getenv("HOME")
