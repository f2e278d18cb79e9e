-- Literals: numbers, and strings with their escapes.
return function(C, lib)
  local byte, sub, find, match, gsub = lib.string.byte, lib.string.sub, lib.string.find, lib.string.match, lib.string.gsub
  local rep, format, concat = lib.string.rep, lib.string.format, lib.table.concat
  local tonumber, number_type, utf8_char = lib.tonumber, lib.math.type, lib.utf8.char
  local new_line, adjust_columns, position = C.new_line, C.adjust_columns, C.position
  local NOT_TERMINATED = "Open string is not terminated"
  local BASES = { x = 16, X = 16, o = 8, O = 8, b = 2, B = 2 }
  local DIGITS = { [16] = "^[0-9a-fA-F_]*", [8] = "^[0-7_]*", [2] = "^[01_]*" }
  local MOST_DIGITS = { [16] = 16, [8] = 22, [2] = 64 }

  local function with_base(letter, digits, sign)
    digits = gsub(digits, "_", "")
    if sign == "-" then return "error", "Invalid number: '" .. letter .. digits .. "'" end
    local base = BASES[letter]
    local plain = gsub(digits, "^0+", "")
    if digits == "" or #plain > MOST_DIGITS[base] or base == 8 and #plain == 22 and byte(plain) > 49 then
      return "error", "Invalid number: '" .. digits .. "'"
    end
    local value = 0 -- 64 bits, of which the first is the sign
    for at = 1, #plain do value = value * base + tonumber(sub(plain, at, at), base) end
    return "int", value
  end

  -- A number whose first digit is at `at`.
  function C.read_number(P, at, sign)
    local text = P.text
    local letter, start = match(text, "^0_*([xXoObB])()", at)
    if letter then
      local _, stop = find(text, DIGITS[BASES[letter]], start)
      P.at = stop + 1
      return with_base(letter, sub(text, start, stop), sign)
    end
    local _, stop = find(text, "^[0-9_]*", at)
    if byte(text, stop + 1) == 46 then
      -- The period belongs to the number when a digit follows, or something that cannot start a property or a range.
      if find(text, "^[0-9]", stop + 2) then
        _, stop = find(text, "^[0-9_]*", stop + 2)
      elseif find(text, "^[^A-Za-z_.]", stop + 2) then
        stop = stop + 1
      end
    end
    local digits = sub(text, at, stop)
    local exponent = match(text, "^[eE][0-9][0-9_]*", stop + 1) or match(text, "^[eE][+-][0-9_]*", stop + 1)
    if exponent then
      stop = stop + #exponent
      digits = digits .. (byte(digits, -1) == 46 and "0" or "") .. exponent
    end
    P.at = stop + 1
    digits = sign .. gsub(digits, "_", "")
    local value = tonumber(digits)
    if not value then return "error", "Invalid number: '" .. digits .. "'" end
    return number_type(value) == "integer" and "int" or "float", value
  end

  local function too_long(limit) return format("Length of string exceeds the maximum limit (%d)", limit) end

  -- A raw string, between as many # as the script likes; the first is at `at`.
  function C.read_raw(P, at)
    local text = P.text
    local opening = find(text, "[^#]", at) or #text + 1
    if byte(text, opening) ~= 34 then
      if opening > #text then
        P.at = opening
        return "error", NOT_TERMINATED
      end
      local char = match(text, "^[^\x80-\xBF][\x80-\xBF]*", opening) or sub(text, opening, opening)
      P.at = opening + #char
      adjust_columns(P, char)
      return "error", "Unexpected '" .. char .. "'"
    end
    local hashes = opening - at
    local stop = find(text, '"' .. rep("#", hashes), opening + 1, true)
    local content = sub(text, opening + 1, (stop or #text + 1) - 1)
    P.at = stop and stop + 1 + hashes or #text + 1
    local from = 1
    while true do
      local line = find(content, "\n", from, true)
      if not line then break end
      from = line + 1
      new_line(P, opening + from)
    end
    adjust_columns(P, sub(content, from))
    if P.limits.max_string and #content > P.limits.max_string then return "error", too_long(P.limits.max_string) end
    if not stop then return "error", NOT_TERMINATED end
    return "string", content
  end

  -- Strings in quotes. `Q` is a string being read: its pieces, where it began, the column that a continued line starts at.

  local PLAIN = { [34] = '^[^"\\\r\n]+', [39] = "^[^'\\\r\n]+", [96] = "^[^`\\$\r\n]+" }
  local ESCAPES = { r = "\r", n = "\n", t = "\t", ["\\"] = "\\" }
  local HEX = { x = 2, u = 4, U = 8 }

  -- Adds a piece that takes up `size` bytes of the script; false where the string is then too long.
  local function append(P, Q, piece, size)
    Q.size = Q.size + #piece
    P.at = P.at + size
    Q[#Q + 1] = piece
    return not P.limits.max_string or Q.size <= P.limits.max_string
  end

  local function append_plain(P, Q, piece)
    local size = #piece
    if Q.skip_before then
      local column = position(P, P.at) & 0xFFFF
      local _, blanks = find(piece, "^[ \t\f\v]*")
      if blanks > Q.skip_before - column then blanks = Q.skip_before - column end
      if blanks > 0 then piece = sub(piece, blanks + 1) end
      if piece ~= "" then Q.skip_before = nil end
    end
    local fine = append(P, Q, piece, size)
    adjust_columns(P, piece)
    return fine
  end

  local function bad_escape(P, upto, at)
    return "error", "Invalid escape sequence: '" .. sub(P.text, P.at, upto) .. "'", position(P, at)
  end

  -- \x41, \u0041, \U00000041: the character, or an error token.
  local function hex(P, letter)
    local text, first = P.text, P.at + 2
    local last = first + HEX[letter] - 1
    for at = first, last do
      if not find(text, "^[0-9a-fA-F]", at) then
        local char = match(text, "^[^\x80-\xBF][\x80-\xBF]*", at) or ""
        return nil, bad_escape(P, at + #char - 1, char ~= "" and at or at - 1)
      end
    end
    local value = tonumber(sub(text, first, last), 16)
    if value > 0x10FFFF or value >= 0xD800 and value <= 0xDFFF then return nil, bad_escape(P, last, last) end
    return utf8_char(value)
  end

  -- What follows a backslash. True, or an error token.
  local function backslash(P, Q, quote)
    local text, at = P.text, P.at
    if quote == 96 then
      if sub(text, at, at + 2) == "\\${" then return append(P, Q, "$", 2) end
      return append(P, Q, "\\", 1)
    end
    Q.skip_before = nil
    local char = match(text, "^[^\x80-\xBF][\x80-\xBF]*", at + 1) or ""
    if char == "\r" and byte(text, at + 2) == 10 then
      P.at = at + 1
      char = "\n"
    end
    if char == "\n" and quote == 34 then
      P.at = P.at + 2
      new_line(P, P.at)
      Q.skip_before = (Q.opening & 0xFFFF) + 1
      return true
    elseif char == "" or char == "\n" then
      return nil, "error", NOT_TERMINATED, Q.opening
    elseif ESCAPES[char] then
      return append(P, Q, ESCAPES[char], 2)
    elseif HEX[char] then
      local decoded, kind, message, pos = hex(P, char)
      if not decoded then return nil, kind, message, pos end
      return append(P, Q, decoded, 2 + HEX[char])
    elseif byte(char) == quote then
      return append(P, Q, char, 2)
    end
    return nil, "error", "Invalid escape sequence: '\\" .. char .. "'", position(P, at + 1)
  end

  -- What is no plain text. "more" where the string goes on, else the token's kind or an error token.
  local function special(P, Q, quote, char)
    local text, at = P.text, P.at
    local fine, kind, message, pos = true, nil, nil, nil
    if char == quote then
      if byte(text, at + 1) ~= quote then
        P.at = at + 1
        return "string"
      end
      fine = append(P, Q, sub(text, at, at), 2)
    elseif char == 36 then
      if byte(text, at + 1) == 123 then
        P.at = at + 1
        return "interpolated"
      end
      fine = append(P, Q, "$", 1)
    elseif char == 92 then
      fine, kind, message, pos = backslash(P, Q, quote)
      if kind then return kind, message, pos end
    elseif char == 13 then
      if byte(text, at + 1) == 10 then
        P.at = at + 1
      else
        fine = append(P, Q, "\r", 1)
      end
    elseif quote ~= 96 then
      return "error", NOT_TERMINATED, Q.opening
    else
      fine = append(P, Q, "\n", 1)
      new_line(P, P.at)
    end
    if not fine then return "error", too_long(P.limits.max_string), Q.opening end
    return "more"
  end

  -- The rest of a string after its quote: kind, value, position. `start` is nil in the text that follows an interpolation.
  function C.read_text(P, quote, start)
    local text, plain = P.text, PLAIN[quote]
    local Q = { size = 0, opening = position(P, P.at - 1) }
    local first
    while true do
      local piece = match(text, plain, P.at)
      if piece then
        first = first or position(P, P.at)
        if not append_plain(P, Q, piece) then return "error", too_long(P.limits.max_string), Q.opening end
      end
      local char = byte(text, P.at)
      if not char then
        return "error", NOT_TERMINATED, quote == 96 and (start or first or 0) or Q.opening
      end
      if char ~= quote then first = first or position(P, P.at) end
      local kind, message, pos = special(P, Q, quote, char)
      if kind == "error" then return kind, message, pos end
      if kind ~= "more" then return kind, Q[2] and concat(Q) or Q[1] or "", start or first or 0 end
    end
  end
end
