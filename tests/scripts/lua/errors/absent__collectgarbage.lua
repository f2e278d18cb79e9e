-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'collectgarbage')
-- hint: memory is managed automatically: remove this call

collectgarbage()
return 1
