/** Modules that scripts/translate makes of the Python package; their types are those of Python. */
declare module "#python/*";
