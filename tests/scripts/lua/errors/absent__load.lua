-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'load')
-- hint: code cannot be compiled from a string here: write it into the script

return load("return 1")()
