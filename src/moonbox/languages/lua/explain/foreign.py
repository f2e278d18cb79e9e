"""Functions, constants and modules that other languages have and Lua has not, each with its Lua form."""

from __future__ import annotations

__all__ = ["ABSENT", "CONSTANTS", "FUNCTIONS", "LENGTHS", "MODULES"]

_PLAIN_LIST = "lists and maps are tables: {1, 2} and {key = value}"
_LOOP = "go over the list in a loop: for _, item in ipairs(list) do … end"
_PATTERNS = 'use Lua patterns: text:match("%d+"), text:gmatch, text:gsub'
_NO_FILES = "there are no files here: use the tools"
_NO_WAIT = "a script cannot wait: calls return when they are done"
_WRITE = "write: "

FUNCTIONS = {
    "len": _WRITE + "#{0}",
    "length": _WRITE + "#{0}",
    "count": _WRITE + "#{0}",
    "str": _WRITE + "tostring({0})",
    "String": _WRITE + "tostring({0})",
    "int": _WRITE + "math.floor({0})",
    "parseInt": _WRITE + "math.floor(tonumber({0}))",
    "float": _WRITE + "tonumber({0})",
    "parseFloat": _WRITE + "tonumber({0})",
    "Number": _WRITE + "tonumber({0})",
    "bool": "every value but nil and false counts as true: test it directly",
    "Boolean": "every value but nil and false counts as true: test it directly",
    "range": "count in a loop: for i = 1, n do … end",
    "xrange": "count in a loop: for i = 1, n do … end",
    "enumerate": "count in a loop: for i, value in ipairs({0}) do … end",
    "list": _PLAIN_LIST,
    "dict": _PLAIN_LIST,
    "tuple": _PLAIN_LIST,
    "set": "a set is a table with true as values: {a = true, b = true}",
    "Array": _PLAIN_LIST,
    "Map": _PLAIN_LIST,
    "Set": "a set is a table with true as values: {a = true, b = true}",
    "sum": "add in a loop: for _, x in ipairs({0}) do total = total + x end",
    "sorted": "table.sort({0}) sorts a list in place",
    "reversed": "go backwards: for i = #{0}, 1, -1 do … end",
    "zip": "go over both by index: for i = 1, #{0} do … end",
    "map": _LOOP,
    "filter": _LOOP,
    "reduce": _LOOP,
    "any": _LOOP,
    "all": _LOOP,
    "foreach": _LOOP,
    "round": _WRITE + "math.floor({0} + 0.5)",
    "pow": _WRITE + "{0} ^ {1}",
    "divmod": "use // and %: {0} // {1}, {0} % {1}",
    "isinstance": 'its type is type({0}), which gives "string", "number", "table" or another name',
    "typeof": _WRITE + "type({0})",
    "isNaN": _WRITE + "{0} ~= {0}",
    "ord": _WRITE + "string.byte({0})",
    "chr": _WRITE + "string.char({0})",
    "hex": _WRITE + 'string.format("%x", {0})',
    "repr": _WRITE + "json.encode({0})",
    "printf": _WRITE + "print(string.format({*}))",
    "println": _WRITE + "print({*})",
    "puts": _WRITE + "print({*})",
    "echo": _WRITE + "print({*})",
    "alert": _WRITE + "print({*})",
    "input": "nobody can be asked from a script: return the question as its value",
    "prompt": "nobody can be asked from a script: return the question as its value",
    "open": _NO_FILES,
    "exit": "end the script with return",
    "quit": "end the script with return",
    "sleep": _NO_WAIT,
    "setTimeout": _NO_WAIT,
    "fetch": "there is no network here: use the tools",
    "append": _WRITE + "table.insert({0}, {1})",
    "push": _WRITE + "table.insert({0}, {1})",
    "join": _WRITE + 'table.concat({0}, ", ")',
    "split": 'go over the parts: for part in {0}:gmatch("{set}") do … end',
    "trim": _WRITE + '{0}:match("^%s*(.-)%s*$")',
    "keys": "go over the keys: for key in pairs({0}) do … end",
    "values": "go over the values: for _, value in pairs({0}) do … end",
    "hasattr": _WRITE + "{0}[{1}] ~= nil",
    "getattr": _WRITE + "{0}[{1}]",
    "isEmpty": _WRITE + "next({0}) == nil",
    "throw": _WRITE + "error({*})",
    "raise": _WRITE + "error({*})",
    "try": "use: local ok, result = pcall(function() … end) if not ok then … end",
    "catch": "use: local ok, result = pcall(function() … end) if not ok then … end",
    "unpack": _WRITE + "table.unpack({*})",
    "await": "calls wait for their result by themselves: leave out await",
}
"""Functions, called by a bare name."""

ABSENT = {
    "require": "there are no modules here: string, table, math, utf8, os, json, docs and tools are already there",
    "load": "code cannot be made from text here: write it into the script",
    "loadstring": "code cannot be made from text here: write it into the script",
    "loadfile": "there are no files here: write the code into the script",
    "dofile": "there are no files here: write the code into the script",
    "module": "there are no modules here: use a table",
    "setmetatable": "metatables are not available here: use plain tables and functions",
    "getmetatable": "metatables are not available here: use plain tables and functions",
    "collectgarbage": "memory is managed without it: leave it out",
    "setfenv": "environments cannot be changed here: leave it out",
    "getfenv": "environments cannot be changed here: leave it out",
    "newproxy": "it is not available here: use a table",
    "io": "there are no files here: use print for output and the tools for data",
    "debug": "debug is not available here: use print to look at values, pcall to catch errors",
    "package": "there are no modules here: string, table, math, utf8, os, json, docs and tools are already there",
    "coroutine": "coroutines are not available here: use loops, and parallel to run calls at the same time",
    "ffi": "ffi is not available here: use the tools",
    "jit": "jit is not available here: leave it out",
    "python": "Python is not reachable here: use the tools",
    "lfs": "there are no files here: use the tools",
    "socket": "there is no network here: use the tools",
}
"""What other Luas have and the sandbox leaves out."""

CONSTANTS = {
    "None": "nil",
    "undefined": "nil",
    "NULL": "nil",
    "Nil": "nil",
    "True": "true",
    "TRUE": "true",
    "False": "false",
    "FALSE": "false",
    "Infinity": "math.huge",
    "NaN": "0/0",
}
"""Constants that Lua spells otherwise."""

LENGTHS = frozenset({"length", "len", "Length"})
"""Fields that other languages read a length from."""

MODULES = {
    "JSON": {
        "parse": _WRITE + "json.decode({*})",
        "stringify": _WRITE + "json.encode({0})",
        "": "write: json.decode and json.encode",
    },
    "cjson": {
        "decode": _WRITE + "json.decode({*})",
        "encode": _WRITE + "json.encode({0})",
        "": "write: json.decode and json.encode",
    },
    "dkjson": {
        "decode": _WRITE + "json.decode({*})",
        "encode": _WRITE + "json.encode({0})",
        "": "write: json.decode and json.encode",
    },
    "console": {"": _WRITE + "print({*})"},
    "Math": {"pow": _WRITE + "{0} ^ {1}", "round": _WRITE + "math.floor({0} + 0.5)", "": "the library is called math"},
    "Object": {
        "keys": "go over the keys: for key in pairs({0}) do … end",
        "values": "go over the values: for _, value in pairs({0}) do … end",
        "entries": "go over the fields: for key, value in pairs({0}) do … end",
        "assign": "copy in a loop: for key, value in pairs(from) do into[key] = value end",
        "": "go over a table's fields: for key, value in pairs(t) do … end",
    },
    "Array": {
        "isArray": 'its type is type({0}), which gives "string", "number", "table" or another name',
        "": _PLAIN_LIST,
    },
    "Promise": {
        "all": "run calls at the same time: parallel{function() return tools.a{} end, function() return tools.b{} end}",
        "": "calls wait for their result by themselves; parallel{…} runs several at the same time",
    },
    "asyncio": {"": "calls wait for their result by themselves; parallel{…} runs several at the same time"},
    "Date": {"now": _WRITE + "os.time()", "": "use os.time and os.date"},
    "datetime": {"": "use os.time and os.date"},
    "time": {"time": _WRITE + "os.time()", "sleep": _NO_WAIT, "": "use os.time and os.clock"},
    "random": {"randint": _WRITE + "math.random({*})", "random": _WRITE + "math.random()", "": "use math.random"},
    "re": {"": _PATTERNS},
    "regex": {"": _PATTERNS},
    "sys": {"exit": "end the script with return", "": "sys is not available here"},
    "process": {"exit": "end the script with return", "": "the process is not reachable here: use the tools"},
    "fs": {"": _NO_FILES},
    "requests": {"": "there is no network here: use the tools"},
    "axios": {"": "there is no network here: use the tools"},
    "http": {"": "there is no network here: use the tools"},
    "bit": {"": "Lua has the operators & | ~ << >>"},
    "bit32": {"": "Lua has the operators & | ~ << >>"},
    "String": {"": "the library is called string"},
    "self": {"": "self exists only in functions defined with a colon: function t:name() … end"},
    "this": {"": "Lua has no this: pass the table as an argument"},
}
"""Global tables of other languages; the entry "" is for members that are not listed."""
