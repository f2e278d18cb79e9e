-- value: 0
return select("#", ...)
