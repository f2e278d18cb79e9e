# attack: climbs from a function to the globals of the prelude
# error: runtime
# line: 5
# message: AttributeError: 'function' object has no attribute '__globals__'
parallel_map.__globals__
