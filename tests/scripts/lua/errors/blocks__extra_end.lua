-- error: syntax
-- line: 9
-- message: <eof> expected near 'end'
-- hint: this end closes nothing: remove it, or look for a block that was closed too early

local function f()
  return 1
end
end
return f()
