-- Functions of maps.
return function(R, lib, host)
  local type, next = lib.type, lib.next
  local U, copy, add_natives, is_map = R.U, R.copy, R.add_natives, R.is_map
  local sorted_keys, callback, alone = R.sorted_keys, R.callback, R.alone

  local function put(map, key, value)
    if map[key] == nil then map[true] = map[true] + 1 end
    map[key] = value
  end

  local function drop(map, key)
    if map[key] ~= nil then
      map[key] = nil
      map[true] = map[true] - 1
    end
  end

  -- Goes through a map in the order of its keys; the function gets the key, and the value as argument or as `this`.
  local function each(caller, fn)
    return function(K, d, pos, map, given, extra)
      local callee = callback(given)
      if not callee or extra ~= nil then return nil end
      local keys, count = sorted_keys(map)
      local result = R.map({ [true] = 0 })
      local call = R.caller(K, d, pos, caller, callee, true)
      local tell = R.meter(pos)
      for i = 1, count do
        local key = keys[i]
        local value = map[key]
        if value ~= nil then -- the callback may take out others
          fn(result, map, key, value, (call(key, value, U)))
          tell(result[key])
        end
      end
      return result
    end
  end

  local function taker(picked)
    return function(result, map, key, value, answer)
      if (answer == true) == picked then
        drop(map, key)
        put(result, key, value)
      end
    end
  end

  add_natives("map", true, {
    len = alone(function(map) return map[true] end),
    is_empty = alone(function(map) return map[true] == 0 end),
    keys = alone(function(map) return R.array((sorted_keys(map))) end),
    values = alone(function(map)
      local keys, count = sorted_keys(map)
      for i = 1, count do keys[i] = copy(map[keys[i]]) end
      return R.array(keys)
    end),
    contains = function(K, d, pos, map, key, extra)
      if type(key) == "string" and extra == nil then return map[key] ~= nil end
    end,
    get = function(K, d, pos, map, key, extra)
      if type(key) ~= "string" or extra ~= nil then return nil end
      local value = map[key]
      return value ~= nil and copy(value) or value == false and false or value == nil and U or value
    end,
    map = each("map", function(result, map, key, value, answer) put(result, key, answer) end),
    filter = each("filter", function(result, map, key, value, answer)
      if answer == true then put(result, key, copy(value)) end
    end),
    to_json = alone(function(map) return R.to_json(map) end),
  })

  add_natives("map", false, {
    set = function(K, d, pos, map, key, value)
      if type(key) ~= "string" or value == nil then return nil end
      put(map, key, value)
      R.check_growth(map, pos, value)
      return U
    end,
    remove = function(K, d, pos, map, key)
      if type(key) ~= "string" then return nil end
      local value = map[key]
      drop(map, key)
      if value == nil then return U end
      return value
    end,
    clear = function(K, d, pos, map)
      for key in next, map do
        if key ~= true then map[key] = nil end
      end
      map[true] = 0
      return U
    end,
    mixin = function(K, d, pos, map, other)
      if not is_map(other) then return nil end
      R.merged(map, other)
      R.check_growth(map, pos)
      return U
    end,
    fill_with = function(K, d, pos, map, other)
      if not is_map(other) then return nil end
      for key, value in next, other do
        if key ~= true and map[key] == nil then put(map, key, copy(value)) end
      end
      R.check_growth(map, pos)
      return U
    end,
    drain = each("drain", taker(true)),
    retain = each("retain", taker(false)),
  })
end
