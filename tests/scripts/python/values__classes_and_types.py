# error: runtime
# message: value[1] is a class (write type(x).__name__ for its name), which cannot leave the script
# line: 8
class Point:
    x = 1


[
    Point(),
] if False else [1, Point]
# next run
# error: runtime
# message: value[0] is a class (write type(x).__name__ for its name), which cannot leave the script
import datetime
[datetime.datetime]
# next run
# error: runtime
# message: value.t is a list[int], which cannot leave the script
{"t": list[int]}
# next run
# error: runtime
# message: value is an int | None, which cannot leave the script
int | None
# next run
# error: runtime
# message: value[0] is a bound method, which cannot leave the script
class Named:
    def name(self):
        return "a"
[Named().name]
# next run
# error: runtime
# message: TypeError: echo: argument.value is a class (write type(x).__name__ for its name), which cannot leave the script
# line: 4
echo(value=Named)
# next run
# value: ["list[int]", "int | None", "<class 'Point'>"]
["list[int]", "int | None", str(Point)]
# next run
# value: ["<module name='a'>", "<b class='c' @click='d'>e</b>", "list[int]", "int | None"]
# calls: echo
echo(value=["<module name='a'>", "<b class='c' @click='d'>e</b>", "list[int]", "int | None"])
