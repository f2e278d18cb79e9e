-- error: runtime
-- line: 4
-- message: boom
error("boom")
