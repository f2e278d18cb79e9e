-- Sizes: what grows is measured against the limits of strings, arrays and maps.
return function(R, lib, host)
  local type = lib.type
  local getmetatable = lib.debug.getmetatable
  local ARRAY, MAP = R.ARRAY, R.MAP

  local function check_sizes(arrays, maps, strings, pos)
    if strings > R.max_string then R.too_large("string", pos) end
    if arrays > R.max_array then R.too_large("array", pos) end
    if maps > R.max_map then R.too_large("map", pos) end
  end

  -- A value that was made at once.
  local function check_value(value, pos)
    if R.limited then
      local arrays, maps, strings = R.sizes(value)
      check_sizes(arrays, maps, strings, pos)
    end
    return value
  end
  R.check_value = check_value

  -- An array or map after it grew. Elements of elements are counted each time while there are few, later now and then.
  function R.check_growth(value, pos, item)
    local meta = getmetatable(value)
    local count = meta == ARRAY and #value or meta == MAP and value[true]
    if count then
      if count > (meta == ARRAY and R.max_array or R.max_map) then R.too_large(meta == ARRAY and "array" or "map", pos) end
      if item ~= nil and type(item) ~= "table" and type(item) ~= "string" then return end
      if count > 64 and count & (count - 1) ~= 0 then return end
    end
    check_value(value, pos)
  end

  -- A function that is told of each item of something new while it grows.
  function R.meter(pos)
    local arrays, maps, strings = 0, 0, 0
    return function(item)
      local kind = type(item)
      if kind == "string" then
        strings = strings + #item
      elseif kind == "table" then
        local a, m, s = R.sizes(item)
        arrays, maps, strings = arrays + a, maps + m, strings + s
      else
        return
      end
      check_sizes(arrays, maps, strings, pos)
    end
  end

  -- A literal that holds other arrays or maps, item by item: the message names the one that is too much.
  -- `places` lists a position for each item of an array, a quoted key and a position for each entry of a map.
  local function check_items(value, is_array, places)
    local arrays, maps, strings = 0, 0, 0
    for i = 1, #places, is_array and 1 or 2 do
      local a, m, s = R.sizes(value[is_array and i or places[i]])
      arrays, maps, strings = arrays + a, maps + m, strings + s
      if is_array then arrays = arrays + 1 else maps = maps + 1 end
      local pos = places[is_array and i or i + 1]
      check_sizes(arrays, maps, strings, pos)
    end
  end
  function R.check_literal(value, places)
    local is_array = getmetatable(value) == ARRAY
    local large = is_array and #value > R.max_array or not is_array and value[true] > R.max_map
    if not large then
      local arrays, maps, strings = R.sizes(value)
      large = arrays > R.max_array or maps > R.max_map or strings > R.max_string
    end
    if large then check_items(value, is_array, places()) end
  end
end
