-- error: runtime
-- line: 3
undefined_function()
