# attack: reads the environment of a process
# error: runtime
# line: 6
# message: RuntimeError: 'os.environ' is not supported in this environment
import os as library
library.environ["PATH"]
