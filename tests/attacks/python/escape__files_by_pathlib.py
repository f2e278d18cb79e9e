# attack: lists a folder of the machine
# error: runtime
# line: 6
# message: PermissionError: Permission denied: '/'
import pathlib
[str(p) for p in pathlib.Path("/").iterdir()]
