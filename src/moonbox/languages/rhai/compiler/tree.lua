-- The syntax tree: tables whose field `t` names what they are. Positions are those that the reference's messages name.
--
--   expressions  literal(kind, value) interpolated(items) array(items) map(names, items) variable(name, path, path_pos) this
--                unary(op, operand) binary(op, left, right) range(left, right, inclusive) logic(op, items)
--                call(name, args, path, path_pos, in_scope) chain(root, steps) closure(params, body) block_expr(block)
--   steps        kind = "property", "method" or "index", name, args, pos, op_pos, optional
--   statements   noop let(name, name_pos, value, const, fresh) assign(target, op, value) expr(expr) block(body)
--                if(condition, then_, other) switch(value, cases) while(condition, body) do(body, condition, until_)
--                for(name, name_pos, counter, items, body) break(value, is_continue) return(value) throw(value)
--                try(body, name, name_pos, handler) import(path) export
--   cases        values (none for the default), guard, body
--
-- The kind of a literal is one of int, float, bool, str, char, unit; an end that a range lacks is a unit literal.
return function(C, lib)
  local type, next = lib.type, lib.next

  C.NONE = {} -- for all lists that have no items and get none

  -- Statements of an expression are where their expression is.
  function C.pos_of(stmt)
    if stmt.t == "expr" then return stmt.expr.pos end
    return stmt.pos
  end

  -- Where an expression starts: of a chain or a logical operator that is its leftmost operand.
  function C.start_of(expr)
    while true do
      local t = expr.t
      if t == "chain" then
        expr = expr.root
      elseif t == "logic" then
        expr = expr.items[1]
      elseif t == "variable" and expr.path then
        return expr.path_pos
      else
        return expr.pos
      end
    end
  end

  -- A statement as a block of its own.
  function C.as_block(stmt)
    if stmt.t == "block" then return stmt end
    return { t = "block", body = { stmt }, pos = C.pos_of(stmt) }
  end

  local function all(items, test)
    for at = 1, #items do
      if not test(items[at]) then return false end
    end
    return true
  end
  C.all = all

  local HOLDS_ITEMS = C.words("array map interpolated")

  -- Whether an expression is made of literals only.
  local function is_constant(expr)
    if expr.t == "literal" then return true end
    return HOLDS_ITEMS[expr.t] ~= nil and all(expr.items, is_constant)
  end
  C.is_constant = is_constant

  local function is_end(expr) return expr.t == "literal" and (expr.kind == "unit" or expr.kind == "int") end

  -- Whether a switch case may have this value.
  function C.is_literal(expr)
    if is_constant(expr) then return true end
    if expr.t == "range" then return is_end(expr.left) and is_end(expr.right) end
    return expr.t == "call" and expr.name == "Fn" and not expr.path and #expr.args == 1
  end

  -- A copy of a part of the tree; `count` is called for each table in it.
  local function copied(node, count)
    count()
    local out = {}
    for key, value in next, node do
      out[key] = type(value) == "table" and copied(value, count) or value
    end
    return out
  end
  C.copied = copied
end
