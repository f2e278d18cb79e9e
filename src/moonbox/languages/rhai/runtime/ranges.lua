-- Ranges, and what `for` goes through.
return function(R, lib, host)
  local number_type, least, most = lib.math.type, lib.math.mininteger, lib.math.maxinteger
  local U, kind_of = R.U, R.kind_of

  function R.range(from, to, inclusive, pos)
    local first = from == U and 0 or from
    local last = to == U and most or to
    if number_type(first) ~= "integer" or number_type(last) ~= "integer" then
      R.not_found(inclusive and "..=" or "..", pos, from, to)
    end
    return R.new_range(first, last, inclusive)
  end

  -- The first and last number of a `for` over a range.
  function R.ends(from, to, inclusive, pos)
    if number_type(from) ~= "integer" or number_type(to) ~= "integer" then
      local range = R.range(from, to, inclusive, pos)
      from, to = range[true], range[false]
    end
    if inclusive then return from, to end
    if to == least then return 1, 0 end
    return from, to - 1
  end

  local counting = {
    __index = function(range, n) return range[true] + n - 1 end,
  }
  -- What `for` goes through: a table of elements and their number.
  function R.iterate(value, pos)
    local kind = kind_of(value)
    if kind == "array" then return value, #value end
    if kind == "range" or kind == "range=" then
      local from, to = value[true], value[false]
      local count = to - from + (kind == "range=" and 1 or 0)
      if to < from then count = 0 elseif count < 0 then count = most end
      return lib.setmetatable({ [true] = from }, counting), count
    elseif kind == "string" then
      local chars = R.chars_of(value)
      return chars, #chars
    elseif kind == "blob" then
      return value[true], #value[true]
    elseif kind == "iterator" then
      return value[true], value[false].count
    end
    local hint = kind == "map" and "go through the keys of a map: for key in map.keys() { ... }"
      or kind == "i64" and "go through a range: for i in 0..n { ... }" or nil
    R.raise("ErrorFor", "For loop expects iterable type", pos, nil, hint)
  end
end
