# attack: starts a program
# check: off
# error: runtime
# line: 7
# message: ModuleNotFoundError: No module named 'subprocess'
# hint: there is no module subprocess here; see the code tool's description for those that there are
import subprocess
