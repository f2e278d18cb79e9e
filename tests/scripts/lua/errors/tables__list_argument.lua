-- error: syntax
-- line: 6
-- message: unexpected symbol near '['
-- hint: a list is written in braces; write: {"a", "b"}

print(table.concat(["a", "b"], ", "))
