-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'load')
-- hint: code cannot be made from text here: write it into the script

return load("return 1")()
