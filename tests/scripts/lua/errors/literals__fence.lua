-- error: syntax
-- line: 6
-- message: unexpected symbol near '`'
-- hint: remove the ``` lines: send only the code

```lua
return 1
```
