# attack: starts a program by way of os
# error: runtime
# line: 6
# message: AttributeError: module 'os' has no attribute 'system'
import os as library
library.system("id")
