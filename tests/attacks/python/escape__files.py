# attack: reads a file of the machine
# check: off
# error: runtime
# line: 6
# message: PermissionError: Permission denied: '/etc/passwd'
open("/etc/passwd").read()
