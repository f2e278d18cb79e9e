-- The vocabulary: keywords, reserved words, symbols, precedences, and what is known of the runtime's functions.
return function(C, lib)
  local find, gmatch = lib.string.find, lib.string.gmatch

  -- A set, or a table with one value for all its keys, written as one text.
  local function words(text, value, into)
    into = into or {}
    for word in gmatch(text, "%S+") do into[word] = value == nil and true or value end
    return into
  end
  C.words = words

  -- Small numbers as text: Lua takes its time to make them, and they are everywhere in what is written.
  local DIGITS = {}
  for number = 0, 255 do DIGITS[number] = lib.string.format("%d", number) end
  function C.digits(number) return DIGITS[number] or lib.string.format("%d", number) end

  C.KEYWORDS = words([[true false let const if else switch do while until loop for in fn continue break return throw try
    catch private import export as]])

  -- Each reserved word or symbol, and how it may be called all the same: "" not at all, "f" as a function, "m" as a method too.
  local RESERVED = words([[use case async public package super var protected spawn shared is sync static default this thread
    yield new match await null with void nil module go goto
    ? # === !== #! ~ !. := ... @ <- -- <| $ -> |> ::< ++ :; *) (*]], "")
  words("print is_def_var is_def_fn eval debug Fn", "f", RESERVED)
  words("curry is_shared call type_of", "m", RESERVED)
  C.RESERVED = RESERVED

  C.SYMBOLS = words([[{ } ( ) [ ] () (* *) + += ++ - -= -> -- * *= ** **= / /= ; , . .. ..= ... = == === => : :: ::< := :;
    < <= <- << <<= <| > >= >> >>= ! != !== !. | || |= |> & && &= ^ ^= ~ % %= @ $ ? ?. ?? ?[ #{ #! #]])

  -- Errors for operators of other languages.
  C.NOT_RHAI = {
    ["==="] = "'===' is not a valid operator. This is not JavaScript! Should it be '=='?",
    ["!=="] = "'!==' is not a valid operator. This is not JavaScript! Should it be '!='?",
    ["->"] = "'->' is not a valid symbol. This is not C or C++!",
    ["<-"] = "'<-' is not a valid symbol. This is not Go! Should it be '<='?",
    [":="] = "':=' is not a valid assignment operator. This is not Go or Pascal! Should it be simply '='?",
    [":;"] = "':;' is not a valid symbol. Should it be '::'?",
    ["::<"] = "'::<>' is not a valid symbol. This is not Rust! Should it be '::'?",
    ["(*"] = "'(* .. *)' is not a valid comment format. This is not Pascal! Should it be '/* .. */'?",
    ["*)"] = "'(* .. *)' is not a valid comment format. This is not Pascal! Should it be '/* .. */'?",
    ["# {"] = "'#' is not a valid symbol. Should it be '#{'?",
  }

  local PRECEDENCE = {}
  for precedence, symbols in lib.next, {
    [30] = "|| ^ |", [60] = "&& &", [90] = "== !=", [110] = "in !in", [130] = "< <= > >=", [135] = "??", [140] = ".. ..=",
    [150] = "+ -", [180] = "* / %", [190] = "**", [210] = "<< >>",
  } do
    words(symbols, precedence, PRECEDENCE)
  end
  C.PRECEDENCE = PRECEDENCE

  -- The operator of each assignment.
  C.ASSIGNMENTS = {
    ["="] = "", ["+="] = "+", ["-="] = "-", ["*="] = "*", ["/="] = "/", ["<<="] = "<<", [">>="] = ">>", ["%="] = "%",
    ["**="] = "**", ["&="] = "&", ["|="] = "|", ["^="] = "^",
  }

  -- After one of these a plus or minus is a sign, not an operator.
  C.NEXT_IS_UNARY = words([[; : , ?? .. ..= { ( [ + += +u - -= -u * *= / /= % %= ** **= << <<= >> >>= = == != < > ! <= >=
    | & if while until in !in && &= || |= ^ ^= return throw ?[ error]])

  -- Letters, digits and underscores, of which the first that is not an underscore is a letter.
  function C.is_identifier(text) return find(text, "^_*[a-zA-Z][a-z_A-Z0-9]*$") ~= nil end

  -- Functions and methods of the runtime that leave their first argument as it is.
  C.PURE = words([[len is_empty contains get keys values map filter find find_map some all index_of reduce reduce_rev extract
    zip order order_by order_desc starts_with ends_with sub_string to_upper to_lower split_rev to_string to_debug
    to_json to_int to_float to_chars chars bytes abs sign floor ceiling round int fraction sqrt exp ln log sin
    cos tan asin acos atan sinh cosh tanh asinh acosh atanh hypot to_degrees to_radians min max is_nan is_finite
    is_infinite to_hex to_octal to_binary is_odd is_even is_zero type_of print debug parse_int parse_float
    parse_json range curry is_shared is_anonymous name elapsed get_bit get_bits bits as_string to_array to_blob
    parse_le_int parse_be_int parse_le_float parse_be_float Fn is_def_var is_def_fn exit parallel parallel_settle
    parallel_map pages group_by count_by sum min_by max_by unique take join entries]])

  -- Methods that change what they are called on, and leave it of the same type.
  C.CHANGING = words([[push pop shift insert remove append splice split truncate chop pad reverse sort sort_by sort_desc dedup
    drain retain for_each clear set replace trim crop make_upper make_lower mixin fill_with set_bit set_bits write_le
    write_be write_ascii write_utf8]])

  -- Properties that Lua itself would find in a string.
  C.STRING_LIBRARY = words("byte char dump find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper")
end
