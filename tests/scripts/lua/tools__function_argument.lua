-- error: runtime
-- message has: tools.echo: argument.value is a function
tools.echo{ value = print }
