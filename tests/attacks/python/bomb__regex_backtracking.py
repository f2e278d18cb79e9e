# attack: a pattern that goes back without end
# limits: {"timeout": 2}
# error: runtime
# line: 7
# message: re.PatternError: Error executing regex: Max limit for backtracking count exceeded
import re
re.match(r"(a|aa)+\1$", "a" * 60 + "b")
