-- error: runtime
error({ code = "\255" })
