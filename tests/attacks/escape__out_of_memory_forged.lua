-- attack: raise Lua's own out-of-memory text
-- error: limit memory
error("not enough memory", 0)
