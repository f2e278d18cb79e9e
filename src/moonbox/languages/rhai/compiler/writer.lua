-- The writer: Lua text of one function after the other, and what all its parts share: constants, operands, variables.
--
-- `W` is the state: the analysis, the unit and the Lua function being written, the helpers of the runtime that were used.
-- An operand is a value in the Lua text, something that can be read more than once without effect: text, type, owned (nothing
-- else holds it; a value that is not owned is copied before it is stored), var (the variable that it reads), literal (its
-- integer).
--
-- Whatever a script holds stays data: the only ways into the text are `quote`, `number` and names that are made here.
return function(C, lib)
  local format, gsub, find, concat, next = lib.string.format, lib.string.gsub, lib.string.find, lib.table.concat, lib.next
  local byte, move, number_type, least = lib.string.byte, lib.table.move, lib.math.type, lib.math.mininteger
  local SCALARS, may_write, digits = C.SCALARS, C.may_write, C.digits

  -- Lua allows 200 locals, 255 registers and 255 upvalues in a function. These leave room for what is written around them.
  local MAX_TEMPORARIES, MAX_LOCALS, MAX_UPVALUES, MAX_STATES = 50, 90, 150, 20
  C.MAX_WITH_LOOPS, C.MAX_ARGUMENTS = 110, 50

  -- Constants as text

  local ESCAPES = {}
  for code = 0, 255 do ESCAPES[lib.string.char(code)] = format("\\%03d", code) end

  local quoted = {} -- names that this script has, which come again and again

  -- A Lua string literal with exactly these bytes.
  local function quote(text)
    local known = quoted[text]
    if known then return known end
    local literal = '"' .. gsub(text, '[\0-\31"\\\127-\255]', ESCAPES) .. '"'
    if #text < 40 then quoted[text] = literal end
    return literal
  end
  C.quote = quote

  -- A Lua number literal of exactly this value and kind.
  local function number(value)
    local text
    if number_type(value) == "integer" then
      if value == least then return "0x8000000000000000" end
      text = format("%d", value)
    elseif value ~= value then
      return "(0/0)"
    else
      text = format("%.17g", value)
      if find(text, "inf", 1, true) then
        text = value > 0 and "1e999" or "-1e999"
      elseif not find(text, "[.e]") then
        text = text .. ".0"
      end
    end
    return byte(text) == 45 and "(" .. text .. ")" or text
  end
  C.number = number

  -- One Lua function: its lines, temporaries, locals and operation counts.

  local function new_function(W)
    W.functions = W.functions + 1
    return {
      number = W.functions, prefix = "t" .. digits(W.functions) .. "_", parent = W.fn, lines = {}, top = 0, most = 0,
      locals = 0, spilled = 0, outside = {}, outsiders = 0, in_try = false, here = 0, ticks = {}, tick_line = nil,
    }
  end
  C.new_function = new_function

  local function emit(W, line)
    local lines = W.fn.lines
    lines[#lines + 1] = line
  end
  C.emit = emit

  local function emit_all(W, more)
    local lines = W.fn.lines
    move(more, 1, #more, #lines + 1, lines)
  end
  C.emit_all = emit_all

  local TOO_DEEP_HINT = "split the expression over several statements"

  -- A fresh temporary. It is given back by setting `top` to what it was before.
  local function temp(W)
    local fn = W.fn
    local top = fn.top + 1
    fn.top = top
    if top > fn.most then
      if top > MAX_TEMPORARIES then C.fail_at(nil, C.TOO_DEEP, fn.here, TOO_DEEP_HINT) end
      fn.most = top
    end
    return fn.prefix .. digits(top)
  end
  C.temp = temp

  -- Writes what counts the operations of the basic block that ends here. Their positions are not in the text: the chunk gets
  -- them as a table, P, which it looks at only when there are too many operations.
  local function finish_ticks(W, fn)
    local ticks = fn.ticks
    local count = #ticks
    if count > 0 then
      local block = #W.places + 1
      W.places[block] = ticks
      local operations = digits(count)
      fn.lines[fn.tick_line] = "c=K[1]-" .. operations .. " K[1]=c if c<0 then over(K," .. operations
        .. ",P[" .. digits(block) .. "])end"
      fn.ticks = {}
    end
    fn.tick_line = nil
  end
  C.finish_ticks = function(W) finish_ticks(W, W.fn) end

  -- A new basic block starts here.
  local function cut(W)
    local fn = W.fn
    if fn.tick_line then finish_ticks(W, fn) end
    local lines = fn.lines
    local line = #lines + 1
    fn.tick_line, lines[line] = line, ""
  end
  C.cut = cut

  -- Counts one operation in the current basic block.
  function C.tick(W, pos)
    local fn = W.fn
    if not fn.tick_line then cut(W) end
    local ticks = fn.ticks
    ticks[#ticks + 1] = pos
    if pos ~= 0 then fn.here = pos end
  end

  -- The declarations that come before the lines of a function.
  function C.declarations(W, fn)
    finish_ticks(W, fn)
    local names = { "local c" }
    for at = 1, fn.most do names[at + 1] = fn.prefix .. digits(at) end
    local head = { concat(names, ",") }
    if fn.spilled > 0 then head[2] = "local X" .. fn.number .. "={}" end
    return head
  end

  -- Helpers of the runtime

  local function use(W, name)
    if not W.helpers[name] then
      W.helpers[name] = true
      W.helpers[#W.helpers + 1] = name
    end
    return name
  end
  C.use = use

  -- The text of a call of a helper; arguments are texts or numbers.
  function C.call(W, name, a, b, c, d, ...)
    use(W, name)
    if not b then return name .. "(" .. a .. ")" end
    if not c then return name .. "(" .. a .. "," .. b .. ")" end
    if not d then return name .. "(" .. a .. "," .. b .. "," .. c .. ")" end
    return name .. "(" .. concat({ a, b, c, d, ... }, ",") .. ")"
  end

  function C.label(W, prefix)
    W.labels = W.labels + 1
    return prefix .. digits(W.labels)
  end

  -- Operands

  local function operand(text, kind, owned) return { text = text, type = kind or "any", owned = owned ~= false } end
  C.operand = operand

  -- A writer of expressions that gives each its own temporary. `write(W, expr, dest, …)` writes what sets `dest`, and returns the
  -- type and whether nothing else holds the value. The temporaries that it takes are free again afterwards.
  function C.into_temporary(write)
    return function(W, expr, ...)
      local dest = temp(W)
      local mark = W.fn.top
      local kind, owned = write(W, expr, dest, ...)
      W.fn.top = mark
      return operand(dest, kind, owned)
    end
  end

  local LITERALS = {
    unit = function() return operand("U", "unit") end,
    bool = function(_, value) return operand(value and "true" or "false", "bool") end,
    int = function(_, value) return { text = number(value), type = "int", owned = true, literal = value } end,
    float = function(_, value) return operand(number(value), "float") end,
    str = function(_, value) return operand(quote(value), "str") end,
    char = function(W, value)
      local at = W.chars[value]
      if not at then
        at = #W.chars + 1
        W.chars[at], W.chars[value] = "R.char(" .. quote(value) .. ")", at
      end
      return operand("C[" .. at .. "]", "char")
    end,
  }

  function C.literal(W, expr) return LITERALS[expr.kind](W, expr.value) end

  -- An operand that can be stored: owned, or without parts that could be changed.
  local function own(W, value)
    if value.owned or SCALARS[value.type] then return value end
    local copy = temp(W)
    emit(W, copy .. "=" .. use(W, "copy") .. "(" .. value.text .. ")")
    return operand(copy, value.type)
  end
  C.own = own

  -- The operand, safe from what is written between two times of the analysis.
  function C.held(W, value, from, to)
    local var = value.var
    if not var or not may_write(W.unit, var, from, to) then return value end
    local copy = temp(W)
    emit(W, copy .. "=" .. (SCALARS[value.type] and value.text or use(W, "copy") .. "(" .. value.text .. ")"))
    return operand(copy, value.type)
  end

  -- Variables

  -- Finds a place for a variable. True if that is a Lua local that is still to be declared.
  local function find_place(W, var, fixed)
    local old, fn = var.replaces, W.fn
    W.placed[var.name] = true
    C.note_definition(W, var)
    if old and old.lua and not old.captured and not var.captured and old.cell == var.cell then
      var.lua = old.lua
      return false
    end
    if fn.locals >= MAX_LOCALS and not fixed then
      if var.captured and not var.top then
        C.fail_at(nil, "Too many variables in use at the same time", fn.here, "put the code into functions of its own")
      end
      fn.spilled = fn.spilled + 1
      var.lua, var.base = "X" .. fn.number .. "[" .. fn.spilled .. "]", "X" .. fn.number
      var.home = fn
      return false
    end
    fn.locals = fn.locals + 1
    W.variables_named = W.variables_named + 1
    var.lua = "v" .. digits(W.variables_named)
    var.base, var.home = var.lua, fn
    return true
  end
  C.find_place = find_place

  -- The names that a unit has defined so far, each with the number that it got; `is_def_var` looks them up.
  function C.note_definition(W, var)
    local unit = var.unit
    local known = unit.known
    if not known then
      known = { count = 0, numbers = {} }
      unit.known = known
    end
    if not known.numbers[var.name] then
      known.count = known.count + 1
      known.numbers[var.name] = known.count
    end
  end

  -- Declares a variable with its first value.
  function C.define(W, var, value)
    if var.cell then value = "{" .. value .. "}" end
    if not (var.top and var.lua) and find_place(W, var) then
      emit(W, "local " .. var.lua .. "=" .. value)
    else
      emit(W, var.lua .. "=" .. value)
    end
  end

  -- Counts what a Lua function takes from those around it: Lua has a limit for that.
  local function note_outside(W, var)
    local fn, home, base = W.fn, var.home, var.base
    while fn and fn ~= home do
      if not fn.outside[base] then
        fn.outside[base] = true
        fn.outsiders = fn.outsiders + 1
        if fn.outsiders > MAX_UPVALUES then
          C.fail_at(nil, "Too many variables captured by one closure", W.fn.here, "pass them in an object map")
        end
      end
      fn = fn.parent
    end
  end

  -- The text that stands for a variable's value.
  function C.read(W, var)
    if var.home ~= W.fn and var.home then note_outside(W, var) end
    return var.cell and var.lua .. "[1]" or var.lua
  end

  -- The cell of a variable that an earlier run left behind, if it did.
  function C.state_cell(W, name)
    local cell = W.states[name]
    if not cell then
      local number_of = #W.states + 1
      cell = number_of <= MAX_STATES and "S" .. number_of or C.call(W, "cellof", quote(name))
      W.states[number_of], W.states[name] = name, cell
    end
    return cell
  end
  C.MAX_STATES = MAX_STATES

  function C.new_writer(A, lenders, limits)
    quoted = {}
    local W = {
      analysis = A, lenders = lenders, limits = limits, unit = A.main, fn = nil,
      helpers = {}, chars = {}, states = {}, placed = {}, known = {}, places = {},
      catching = nil, loops = {}, variables = 0, functions = -1, variables_named = 0, labels = 0,
    }
    W.fn = C.new_function(W) -- the chunk itself
    use(W, "over")
    use(W, "deep")
    return W
  end
end
