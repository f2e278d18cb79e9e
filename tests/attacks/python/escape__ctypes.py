# attack: loads the C library
# check: off
# error: runtime
# line: 7
# message: ModuleNotFoundError: No module named 'ctypes'
# hint: there is no module ctypes here; see the code tool's description for those that there are
import ctypes
