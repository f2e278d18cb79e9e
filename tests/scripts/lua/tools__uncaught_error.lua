-- error: tool
-- message has: it failed
-- calls: fail
tools.fail()
