# attack: brackets nested deeper than a parser's stack
# error: syntax
# line: 5
# message: Source is too deeply nested (<string>, line 1)
eval("[" * 100000 + "]" * 100000)
