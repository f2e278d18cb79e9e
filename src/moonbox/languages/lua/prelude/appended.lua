-- Tables that a script appends to: `t = {}` with `t[#t + 1] = x` or `table.insert(t, x)` anywhere in its text. They are lists, also when
-- nothing was appended. Only the text and its names decide, so that a replay comes to the same.
return function()
  local find, match, sub, concat = string.find, string.match, string.sub, table.concat
  local LONGEST = 100000 -- bytes of a script; this is done before its clock runs

  -- The tokens of a script and where each starts; nil where it does not end. A string is the token "", a comment is none.
  local function tokens_of(source)
    local tokens, starts, at, count = {}, {}, 1, 0
    while true do
      at = find(source, "%S", at)
      if not at then return tokens, starts end
      local start, token = at, match(source, "^[%a_][%w_]*", at)
      local comment = not token and match(source, "^%-%-()", at)
      local level = not token and match(source, "^%[(=*)%[", comment or at)
      if level then
        local _, last = find(source, "]" .. level .. "]", at, true)
        if not last then return nil end
        at, token = last + 1, ""
      elseif comment then
        at = find(source, "\n", at, true) or #source + 1
      elseif token then
        at = at + #token
      elseif find(source, "^[\"']", at) then
        local quote = sub(source, at, at)
        repeat
          at = find(source, "[\\\"']", at + 1)
          if not at then return nil end
          local found = sub(source, at, at)
          if found == "\\" then at = at + 1 end
        until found == quote
        at, token = at + 1, ""
      else
        token = match(source, "^%d[%w_.]*", at) or sub(source, at, at)
        at = at + #token
      end
      if not comment then
        count = count + 1
        tokens[count], starts[count] = token, start
      end
    end
  end

  local function is_name(token) return token ~= nil and find(token, "^[%a_]") ~= nil end

  -- The last name of `a.b.c`, and the place after it; nil where there is none.
  local function path(tokens, at)
    if not is_name(tokens[at]) then return nil end
    while tokens[at + 1] == "." and is_name(tokens[at + 2]) do at = at + 2 end
    return tokens[at], at + 1
  end

  local function appended_in(tokens)
    local names = {}
    for at = 1, #tokens do
      if tokens[at] == "#" and tokens[at - 1] == "[" then
        local name, after = path(tokens, at + 1)
        if name and tokens[at - 2] == name and tokens[after] == "+" and tokens[after + 1] == "1" and tokens[after + 2] == "]"
          and tokens[after + 3] == "=" then
          names[name] = true
        end
      elseif tokens[at] == "insert" and tokens[at + 1] == "(" then
        local name, after = path(tokens, at + 2)
        if name and tokens[after] == "," then names[name] = true end
      end
    end
    return next(names) and names
  end

  -- The source with `call` instead of the `{}` of each such table; nil where it has none.
  return function(source, call)
    if #source > LONGEST or not find(source, "{%s*}") or not (find(source, "#", 1, true) or find(source, "insert", 1, true)) then return nil end
    local tokens, starts = tokens_of(source)
    local names = tokens and appended_in(tokens)
    if not names then return nil end
    local parts, written = {}, 1
    for at = 2, #tokens do
      if tokens[at] == "=" and tokens[at + 1] == "{" and tokens[at + 2] == "}" then
        local first, value = at - 1, at + 1
        while tokens[first - 1] == "," and is_name(tokens[first - 2]) do first = first - 2 end
        if tokens[value + 2] ~= "," or tokens[value + 3] ~= "{" then first = at - 1 end -- a field after others in a constructor
        while first < at and tokens[value] == "{" and tokens[value + 1] == "}" do
          if names[tokens[first]] then
            parts[#parts + 1] = sub(source, written, starts[value] - 1) .. call
            written = starts[value + 1] + 1
          end
          if tokens[value + 2] ~= "," then break end
          first, value = first + 2, value + 3
        end
      end
    end
    if written == 1 then return nil end
    return concat(parts) .. sub(source, written)
  end
end
