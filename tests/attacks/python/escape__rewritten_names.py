# attack: a script that uses the names that a rewritten script has
# error: runtime
# line: 7
# message: AttributeError: 'int' object has no attribute 'mean'
_m_statistics = 1
import statistics
statistics.mean([1, 3])
