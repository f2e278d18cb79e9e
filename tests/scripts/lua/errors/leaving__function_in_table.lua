-- error: runtime
-- line: 6
-- message: value.run is a function, which cannot leave the script
-- hint: only data can leave the script: call the function, or remove the field

return {name = "x", run = function() end}
