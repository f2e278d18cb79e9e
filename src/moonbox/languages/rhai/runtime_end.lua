-- The end of the one chunk in which the compiler's and the runtime's files are.
return function(host)
  local C, R = {}, {}
  for i = 1, #compiler do compiler[i](C, host.lib) end
  R.compiler = C
  for i = 1, #runtime do runtime[i](R, host.lib, host) end
  C.raise = R.syntax_error
  return R
end
