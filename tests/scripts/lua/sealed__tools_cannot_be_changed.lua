-- error: runtime
-- message has: the table 'tools' is read-only
tools.add = print
