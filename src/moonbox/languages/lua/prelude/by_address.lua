-- Coroutines reach the interrupt by their addresses. The same instructions with and without the native part, so that
-- operations are counted alike.
return function(host)
  local native = debug.getregistry()["moonbox.native"]
  for name, f in pairs(native or {}) do host[name] = f end
  local enter, adopt, format = host.enter, host.adopt, native and host.second or string.format
  local decode, ready = host.decode, native and host.ready or type
  function host.enter(level, co) enter(level, format("%p", co)) end
  function host.adopt(co) adopt(format("%p", co)) end
  function host.decode(text) ready(text) return decode(text) end
end
