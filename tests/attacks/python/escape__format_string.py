# attack: climbs through attributes in a format
# error: runtime
# line: 5
# message: AttributeError: 'function' object has no attribute '__class__'
"{0.__class__.__init__.__globals__}".format(parallel_map)
