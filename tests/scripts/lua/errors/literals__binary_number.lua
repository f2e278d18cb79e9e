-- error: syntax
-- line: 6
-- message: malformed number near '0b101'
-- hint: Lua has no 0b and 0o numbers: write 5, or 0x5 in hexadecimal digits

return 0b101
