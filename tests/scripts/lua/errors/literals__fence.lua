-- error: syntax
-- line: 6
-- message: unexpected symbol near '`'
-- hint: leave out the ``` lines: the script is the code alone

```lua
return 1
```
