-- value: "%p 1"
return string.format("%%p %d", 1)
