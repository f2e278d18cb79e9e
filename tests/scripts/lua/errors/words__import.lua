-- error: syntax
-- line: 6
-- message: syntax error near 'json'
-- hint: nothing has to be imported: string, table, math, utf8, os, json, docs and tools are already available

import json
return 1
