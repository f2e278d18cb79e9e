"""Python modules of moonbox as JavaScript modules, so that logic which both packages need is written once.

It translates the Python that these modules are written in: functions, classes, comprehensions, generators and `match`.
What it does not know ends the build with the file and line. Keyword arguments become positional ones here, by the
signatures of all modules. What depends on types (`+`, `==`, truth, methods of text and containers) asks src/python/ at
run time.
"""
