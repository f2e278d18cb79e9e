-- error: syntax
return )
