-- attack: fill the host's record with arguments that are small in the script and huge when written out, call by call
-- limits: {"max_memory": 8000000, "timeout": 30}
-- error: limit array
-- message has: elements in one run
-- calls: echo echo
local row, list = { a = 1 }, {}
for i = 1, 50000 do list[i] = row end
for i = 1, 50 do tools.echo{ other = list } end
