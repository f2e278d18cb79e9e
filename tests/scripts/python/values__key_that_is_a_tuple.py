# error: runtime
# message: value has a key that is a tuple; keys must be strings or integers: str(key)
{(1, 2): 3}
