-- What a script finds in its environment: an allow-list, as data. What is not named here does not exist for a script.
return {
  -- Taken from Lua as they are.
  base = {
    "assert", "error", "rawequal", "rawget", "select", "tonumber", "type", "_VERSION",
  },
  -- Implemented in library.lua, order.lua, list.lua, main.lua, stop.lua and calls.lua; listed so that this file is complete.
  replaced = {
    "ipairs", "next", "pairs", "pcall", "print", "rawlen", "rawset", "tostring", "xpcall",
    "array", "docs", "json", "list", "os", "pages", "parallel", "tools",
  },
  -- Constants of other languages. Reading one that the script has not defined is an error, not nil.
  elsewhere = { "FALSE", "False", "Infinity", "NULL", "NaN", "Nil", "None", "TRUE", "True", "undefined" },
  -- Methods of other languages' lists and strings, which no data has as a field.
  methods = {
    "append", "capitalize", "charAt", "concat", "contains", "each", "endsWith", "ends_with", "endswith", "extend", "filter",
    "forEach", "foreach", "hasOwnProperty", "has_key", "includes", "indexOf", "insert", "isdigit", "join", "map", "pop", "push",
    "reduce", "remove", "replace", "replaceAll", "reverse", "shift", "slice", "sort", "split", "startsWith", "starts_with",
    "startswith", "strip", "substr", "substring", "toFixed", "toLowerCase", "toString", "toUpperCase", "tolower", "toupper",
    "trim", "unpack", "unshift",
  },
  libraries = {
    string = {
      "byte", "char", "find", "format", "gmatch", "gsub", "len", "lower", "match", "pack", "packsize", "rep", "reverse",
      "sub", "unpack", "upper",
    },
    table = { "concat", "insert", "move", "pack", "remove", "sort", "unpack" },
    math = {
      "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max", "maxinteger", "min",
      "mininteger", "modf", "pi", "rad", "random", "randomseed", "sin", "sqrt", "tan", "tointeger", "type", "ult",
    },
    utf8 = { "char", "charpattern", "codepoint", "codes", "len", "offset" },
    os = { "clock", "date", "difftime", "time" },
  },
  -- Safe versions, each enabled by the host.
  features = {
    coroutines = { "close", "create", "isyieldable", "resume", "running", "status", "wrap", "yield" },
    metatables = { "getmetatable", "setmetatable" },
  },
}
