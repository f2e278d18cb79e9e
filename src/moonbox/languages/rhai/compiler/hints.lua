-- Hints for syntax errors: what those who know another language meant to write.
return function(C, lib)
  local find, sub, concat, next = lib.string.find, lib.string.sub, lib.table.concat, lib.next

  local NO_NULL = "Rhai has no %s: the empty value is ()"
  local SWITCH = "write switch x { 1 => ..., _ => ... }"
  local WAITS = "a tool call waits for its result by itself; parallel([|| a(1), || b(2)]) runs calls together"
  local MAPS = "an object map is written #{name: value}"
  local CLOSURE = "an anonymous function is written |x| x + 1"
  local FUNCTION = "define a function with fn name(a, b) { ... }"
  local NO_CLASSES = "there are no classes: make an object map with #{name: value}"
  local INTERPOLATE = "put values into text with backticks: `total: ${x}`"
  local NO_TYPES = "there are no types in declarations: write let x = 1"
  local PLAIN_FUNCTION = "a function is written fn name(a, b) { ... }, without types"

  local RESERVED = {
    null = lib.string.format(NO_NULL, "null"), ["nil"] = lib.string.format(NO_NULL, "nil"),
    void = lib.string.format(NO_NULL, "void"),
    var = "declare a variable with let",
    match = SWITCH, case = SWITCH,
    default = "the default case of a switch is _ => ...",
    new = NO_CLASSES,
    async = WAITS, await = WAITS,
    this = "this is bound in functions that are called as a method, x.f()",
    ["++"] = "write x += 1", ["--"] = "write x -= 1",
    ["?"] = "write if condition { a } else { b }; for a default value a ?? b",
    ["@"] = "there are no decorators or annotations",
    ["$"] = INTERPOLATE,
    ["#"] = MAPS .. "; a comment starts with //",
    ["~"] = "there is no bitwise not: write x ^ -1",
    ["|>"] = "nest the calls: g(f(x))",
  }

  -- Words before the error.
  local BEFORE = {
    ["and"] = "write && for and", ["or"] = "write || for or", ["not"] = "write ! for not",
    elif = "write else if", elsif = "write else if",
    unless = "write if !condition { ... }", ["then"] = "write if condition { ... }",
    def = FUNCTION, func = FUNCTION, ["function"] = FUNCTION .. ", an anonymous one with |a, b| a + b",
    ["local"] = "declare a variable with let",
    int = NO_TYPES,
    foreach = "write for item in list { ... }",
    lambda = "write an anonymous function as |x| x + 1",
    mut = "every variable can be changed: write let x = 1",
    class = NO_CLASSES, struct = "there are no structs: make an object map with #{name: value}",
    raise = "write throw value", except = "write try { ... } catch (e) { ... }",
    typeof = "write type_of(x)",
    delete = 'write map.remove("key")', del = 'write map.remove("key")',
  }

  -- A part of the message, patterns of which one fits the tokens up to the error (none: any tokens), and what to write.
  local RULES = {
    { "arguments list", { "%f[%w_]vec !$", "%f[%w_]vec ! %[$" }, "there are no macros: an array is written [1, 2]" },
    { "object map literal", { "#{ %l+$" }, 'a keyword as a name is written in quotes: #{"if": 1}, map["if"]' },
    { "name of a property", nil, 'a keyword as a name is written in quotes: #{"if": 1}, map["if"]' },
    { "", { '%f[%w_]f "[^"]*"$' }, INTERPOLATE },
    { "parameters of", { ":$" }, "parameters have no types: write fn f(a, b) { ... }" },
    { "parameters of", { "=$" }, "parameters have no default values" },
    { "terminate", { "%f[%w_]let [%w_]+ :$", "%f[%w_]const [%w_]+ :$" }, NO_TYPES },
    { "", { '{ "[^"]*" :$', "{ [%w_]+ :$" }, MAPS },
    { "to follow the property", nil, MAPS },
    { "iteration variable", nil, "write for i in 0..n { ... }, or for (item, index) in list { ... }" },
    { "", { "[)|] =>$", "[(,] [%w_]+ =>$" }, CLOSURE },
    { "separate the arguments", { "[(,] [%w_]+ :$" }, "named arguments are one map: name(#{key: value})" },
    { "Unexpected 'fn'", nil, CLOSURE },
    { "terminate", { "%f[%w_]let .* ,$" }, "declare one variable in each let" },
    { "terminate", { "%f[%w_]if$" }, "a choice between values is written if condition { a } else { b }" },
    { "terminate", { "%f[%w_]as$" }, "there are no casts: write x.to_int(), x.to_float() or x.to_string()" },
    { "name of a variable", { "%f[%w_]let [%[({]$" }, "take the parts one by one: let a = list[0];" },
    { "Invalid character: '", nil, 'text is written in double quotes, "abc"; single quotes hold one character' },
    { "Unexpected '&'", nil, "there are no references: write the name alone" },
    { "index expression", { ":$" }, "a part of a list or text is taken with a range: list.extract(1..3), text[1..3]" },
    { "", { "%[ .*%f[%w_]for$" }, "there are no comprehensions: write list.map(|x| ...) or list.filter(|x| ...)" },
    { "", { "%.%.%.$", "%.%.%. [%w_]+$" }, "there is no spread: arrays and maps are joined with +" },
    { "Unexpected '='", { "|| =$", "%?%? =$", "&& =$" }, "write x = x ?? y" },
    { "Unexpected ')'", { "%( %)$" }, "the empty value is written () without a space between" },
    { "Unexpected 'try'", nil, "try has no value: declare the variable before it and assign to it inside" },
    { "Expecting parameters", nil, PLAIN_FUNCTION },
    { "Expecting body statement block", nil, PLAIN_FUNCTION },
    { "start a statement block", nil, "the body of if, for, while, try and fn is a block: { ... }" },
    { "Variable name is not proper", nil, "names start with a letter" },
  }

  local function fits(patterns, tokens)
    if not patterns then return true end
    for at = 1, #patterns do
      if find(tokens, patterns[at]) then return true end
    end
    return false
  end

  -- What to write instead, judged by the message and the tokens before the error.
  function C.hint_for(message, near)
    for word, hint in next, RESERVED do
      if find(message, "'" .. word .. "' is a reserved", 1, true) or find(message, "operator: '" .. word .. "'", 1, true) then
        return hint
      end
    end
    local tokens = {}
    for at = #near, 1, -1 do
      if BEFORE[near[at]] then return BEFORE[near[at]] end
      tokens[at] = sub(near[at], 1, 40)
    end
    local text = concat(tokens, " ")
    for at = 1, #RULES do
      local rule = RULES[at]
      if find(message, rule[1], 1, true) and fits(rule[2], text) then return rule[3] end
    end
    return nil
  end
end
