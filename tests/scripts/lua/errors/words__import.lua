-- error: syntax
-- line: 6
-- message: syntax error near 'json'
-- hint: there is nothing to import: string, table, math, utf8, os, json, docs and tools are already there

import json
return 1
