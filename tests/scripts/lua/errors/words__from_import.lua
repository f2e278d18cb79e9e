-- error: syntax
-- line: 6
-- message: syntax error near 'math'
-- hint: nothing has to be imported: string, table, math, utf8, os, json, docs and tools are already available

from math import sqrt
return sqrt(4)
