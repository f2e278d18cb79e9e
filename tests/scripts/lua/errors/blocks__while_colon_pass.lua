-- error: syntax
-- line: 6
-- message: function arguments expected near <eof>
-- hint: Lua has no colon before a block: use do … end; write: while true do end

while True: pass
