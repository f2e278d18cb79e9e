# attack: JSON nested deeper than a parser's stack
# error: runtime
# line: 6
# message: json.JSONDecodeError: recursion limit exceeded: line 1 column 201 (char 200)
import json
json.loads("[" * 100000)
