-- error: syntax
-- line: 6
-- message: syntax error near 'math'
-- hint: there is nothing to import: string, table, math, utf8, os, json, docs and tools are already there

from math import sqrt
return sqrt(4)
