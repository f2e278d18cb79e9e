# error: runtime
# message: value.f is a function, which cannot leave the script
{"f": print}
