-- error: syntax
-- line: 8
-- message: 'end' expected (to close 'function' at line 6) near '}'
-- hint: Lua has no braces around blocks; a block is closed with end, not }

local function f()
  return 1;
}
