# error: runtime
# message: value.f is a function, which cannot leave the script
{"f": print}
# next run
# error: runtime
# message: value[0] is a function, which cannot leave the script
def f():
    return 1
[f, lambda x: x]
# next run
# error: runtime
# message: value is a coroutine, which cannot leave the script: await it
async def later():
    return 1
later()
