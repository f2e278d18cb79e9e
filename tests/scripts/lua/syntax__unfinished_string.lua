-- error: syntax
return "abc
