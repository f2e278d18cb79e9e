-- error: runtime
-- line: 6
-- message: attempt to index a nil value (global 'Promise')
-- hint: there is no Promise here; run calls at the same time: parallel{function() return tools.a{} end, function() return tools.b{} end}

return Promise.all({})
