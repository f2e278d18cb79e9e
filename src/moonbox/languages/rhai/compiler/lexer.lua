-- The lexer: one token at a time into the parser's state, because the text after an interpolation is read in another mode.
--
-- A token is P.kind, P.pos and P.value. Its kind is the symbol or keyword itself, or one of int, float, char, string,
-- interpolated, name, reserved, error, end; signs are "+u" and "-u". A position is one number, as the runtime has it: the line
-- times 2^16 plus the column, both from 1. P.base + index is the position of a character: P.base changes with each line, and
-- where a character has more than one byte. Columns end at 65535: P.last is the last position of a line.
return function(C, lib)
  local byte, sub, find, match = lib.string.byte, lib.string.sub, lib.string.find, lib.string.match
  local RESERVED, SYMBOLS, NOT_RHAI = C.RESERVED, C.SYMBOLS, C.NOT_RHAI
  local NEXT_IS_UNARY = C.NEXT_IS_UNARY
  local utf8_len = lib.utf8.len
  local LINE = 1 << 16

  -- Words that are no names: keywords as they are, and those that are reserved.
  local WORDS = { _ = "_" }
  for text in lib.next, RESERVED do WORDS[text] = "reserved" end
  for text in lib.next, C.KEYWORDS do WORDS[text] = text end

  -- A line starts at that character.
  local function new_line(P, at)
    local line = P.line + 1
    local start = line * LINE
    P.line, P.base, P.last = line, start + 1 - at, start + LINE - 1
  end
  C.new_line = new_line

  -- The position of a character.
  function C.position(P, at)
    local pos = P.base + at
    return pos <= P.last and pos or P.last
  end

  -- That text lies between here and what comes next: its characters of several bytes count as one each.
  local function adjust_columns(P, text)
    if find(text, "[\x80-\xFF]") then P.base = P.base - (#text - (utf8_len(text) or #text)) end
  end
  C.adjust_columns = adjust_columns

  local function line_comment(P, at)
    local stop = find(P.text, "[\r\n]", at)
    if not stop then
      adjust_columns(P, sub(P.text, at))
      return #P.text + 1
    end
    if sub(P.text, stop, stop + 1) == "\r\n" then stop = stop + 1 end
    new_line(P, stop + 1)
    return stop + 1
  end

  -- Comments nest.
  local function block_comment(P, at)
    local text, depth = P.text, 1
    local from = at
    at = at + 2
    while depth > 0 do
      at = find(text, "[/*\n]", at)
      if not at then
        adjust_columns(P, sub(text, from))
        return #text + 1
      end
      local pair = sub(text, at, at + 1)
      if pair == "/*" then
        depth, at = depth + 1, at + 2
      elseif pair == "*/" then
        depth, at = depth - 1, at + 2
      else
        at = at + 1
        if byte(pair) == 10 then
          new_line(P, at)
          from = at
        end
      end
    end
    adjust_columns(P, sub(text, from, at - 1))
    return at
  end

  -- The index of the next character that is part of a token.
  local function skip(P, at)
    local text = P.text
    while true do
      local char = byte(text, at)
      if char == 32 then
        at = at + 1
        if byte(text, at) == 32 then at = find(text, "[^ ]", at) or #text + 1 end
      elseif char == 10 then
        at = at + 1
        new_line(P, at)
      elseif char == 9 or char == 12 or char == 13 then
        at = at + 1
      elseif char == 47 then -- a slash
        local following = byte(text, at + 1)
        if following == 47 then
          at = line_comment(P, at)
        elseif following == 42 then
          at = block_comment(P, at)
        else
          return at, char
        end
      else
        return at, char
      end
    end
  end

  local function word(P, at, first)
    local text, after = match(P.text, "^([a-z_A-Z0-9]*) ?()", at)
    P.at = after
    local keyword = WORDS[text]
    if keyword then return keyword, keyword == "reserved" and text or "" end
    if first == 95 and not find(text, "^_*[A-Za-z]") then return "error", "Variable name is not proper: '" .. text .. "'" end
    return "name", text
  end

  local function reserved(symbol)
    local message = NOT_RHAI[symbol]
    if message then return "error", message end
    return "reserved", symbol
  end

  local function long_symbol(P, at)
    local text = P.text
    local three = sub(text, at, at + 2)
    if three == "!in" and not find(text, "^[a-z_A-Z0-9]", at + 3) then
      P.at = at + 3
      return "!in"
    elseif three == "# {" then
      P.at = at + 3
      return reserved(three)
    end
    local known = SYMBOLS[three] and three
    if not known then
      local two = sub(three, 1, 2)
      if two == "# " then
        P.at = at + 2
        return reserved("#")
      end
      local one = sub(three, 1, 1)
      known = SYMBOLS[two] and two or SYMBOLS[one] and one
    end
    if not known then
      local char = match(text, "^[^\x80-\xBF][\x80-\xBF]*", at) or sub(text, at, at)
      P.at = at + #char
      P.base = P.base - (#char - 1)
      return "error", "Unexpected '" .. char .. "'"
    end
    P.at = at + #known - (known == "#!" and 1 or 0)
    return known
  end

  -- A symbol that can be longer than one character.
  local function symbol(P, at)
    local known, value = long_symbol(P, at)
    if value then return known, value end
    if P.unary then
      if known == "-" then return "-u", "" end
      if known == "+" then return "+u", "" end
    end
    if RESERVED[known] then return reserved(known) end
    return known, ""
  end

  local function quoted(P, at, char, pos)
    local text = P.text
    if char == 39 and byte(text, at + 1) == 39 then
      P.at = at + 1
      return "error", "Invalid character: ''", pos
    end
    at = at + 1
    if char == 96 then -- text that begins on the next line begins there
      local stop = match(text, "^\r?\n()", at) or match(text, "^\r()", at)
      if stop then
        at = stop
        new_line(P, at)
      end
    end
    P.at = at
    local kind, value, place = C.read_text(P, char, pos)
    if char == 39 and kind == "string" then
      if utf8_len(value) == 1 then return "char", value, place end
      return "error", "Invalid character: '" .. value .. "'", pos
    end
    return kind, value, place
  end

  -- How a token is read, by its first character: functions of the state, the index, the character and the position there,
  -- which give kind, value and, where it is another one, the position.
  local READERS = {}
  for char = 0, 255 do READERS[char] = symbol end
  for char = 97, 122 do READERS[char], READERS[char - 32] = word, word end
  READERS[95] = word
  for char = 48, 57 do
    READERS[char] = function(P, at) return C.read_number(P, at, "") end
  end
  READERS[34], READERS[39], READERS[96] = quoted, quoted, quoted

  -- Most symbols of one character are all there is, unless one of these follows.
  local SECOND = {}
  for text in lib.next, SYMBOLS do
    local first = byte(text)
    SECOND[first] = SECOND[first] or {}
    if #text > 1 then SECOND[first][byte(text, 2)] = true end
  end
  for text in lib.next, SYMBOLS do
    local first = byte(text)
    local longer = SECOND[first]
    if #text == 1 and not RESERVED[text] and text ~= "!" and text ~= "-" and text ~= "+" then
      READERS[first] = function(P, at)
        if longer[byte(P.text, at + 1)] then return symbol(P, at) end
        P.at = at + 1
        return text, ""
      end
    end
  end

  READERS[45] = function(P, at)
    if P.unary and find(P.text, "^[0-9]", at + 1) then return C.read_number(P, at + 1, "-") end
    return symbol(P, at)
  end
  READERS[35] = function(P, at)
    if find(P.text, "^[\"#]", at + 1) then return C.read_raw(P, at) end
    return symbol(P, at)
  end

  local function at_end(P, at)
    P.at = at
    return "end", ""
  end

  local STARTS_BLANK = { [9] = true, [10] = true, [12] = true, [13] = true, [32] = true, [47] = true }

  -- Reads the next token; "end" again and again at the end, "error" with a message where there is none.
  local function advance(P)
    local at = P.at
    local char = byte(P.text, at)
    if STARTS_BLANK[char] then at, char = skip(P, at) end
    local pos = P.base + at
    if pos > P.last then pos = P.last end
    local read = READERS[char] or at_end
    local kind, value, place = read(P, at, char, pos)
    P.kind, P.value, P.pos = kind, value, place or pos
    P.unary = NEXT_IS_UNARY[kind]
  end
  C.advance = advance

  -- The rest of a backtick string after the brace that closes an interpolation, which is the token in sight.
  function C.text_after_interpolation(P)
    local kind, value, pos = C.read_text(P, 96, nil)
    P.unary = NEXT_IS_UNARY[kind]
    return kind, value, pos
  end
end
