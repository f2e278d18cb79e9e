-- error: runtime
-- line: 7
-- message: tools.echo: argument.value is a function, which cannot leave the script
-- hint: only data can leave the script: call the function, or remove the field

local x = 1
return tools.echo{value = print}
