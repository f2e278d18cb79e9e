-- error: runtime
-- message: {"code":5}
error({ code = 5 })
