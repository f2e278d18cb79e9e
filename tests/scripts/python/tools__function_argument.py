# value: "TypeError: echo: argument.value is a function, which cannot leave the script"
try:
    echo(value=print)
except TypeError as e:
    r = f"TypeError: {e}"
r
# next run
# error: runtime
# line: 4
# message: "TypeError: echo: argument.value.f is a function, which cannot leave the script"
echo(value={"f": lambda: 1})
