-- error: runtime
-- line: 6
-- message: attempt to call a nil value (global 'collectgarbage')
-- hint: memory is managed without it: leave it out

collectgarbage()
return 1
