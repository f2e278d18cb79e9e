-- The host's parser: behind the files of the compiler (`compiler`) and the number of instructions that it may take (`most`).
--
-- It returns a function that gives a script's outline, or nothing and the message, line and column of what is wrong with it.
local sethook, pcall, error, type, next, globals = debug.sethook, pcall, error, type, next, _G
local lib = {
  string = string, table = table, math = math, utf8 = utf8, tonumber = tonumber, tostring = tostring, type = type,
  next = next,
}
local C = {}
function C.raise(message, line, column) error({ message = message, line = line, column = column }) end
for i = 1, #compiler do compiler[i](C, lib) end
string.dump = nil
for name in next, globals do globals[name] = nil end
local function too_long() error("the script takes too long to read", 0) end
return function(text)
  sethook(too_long, "", most)
  local fine, result = pcall(C.outline, text)
  sethook()
  if fine then return result, nil, nil, nil end
  if type(result) ~= "table" then return nil, nil, nil, nil end
  return nil, result.message, result.line, result.column
end
