# attack: climbs from a value to every class of the interpreter
# error: runtime
# line: 5
# message: AttributeError: type object 'tuple' has no attribute '__bases__'
().__class__.__bases__[0].__subclasses__()
