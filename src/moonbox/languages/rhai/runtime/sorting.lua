-- Sorting of arrays.
return function(R, lib, host)
  local number_type, move = lib.math.type, lib.table.move
  local U, copy, callback = R.U, R.copy, R.callback

  -- What callbacks go through: they may change the array itself.
  local function snapshot(list) return move(list, 1, #list, 1, {}) end
  local function replace(list, items)
    for i = #list, #items + 1, -1 do list[i] = nil end
    move(items, 1, #items, 1, list)
  end
  R.snapshot, R.replace = snapshot, replace

  -- Sorting: by merging, so that equal elements keep their order and comparers may call tools.
  local function merge_sort(list, comes_before)
    local count = #list
    local from, into = list, {}
    local width = 1
    while width < count do
      local at = 1
      while at <= count do
        local middle, stop = at + width, at + 2 * width
        if middle > count + 1 then middle = count + 1 end
        if stop > count + 1 then stop = count + 1 end
        local left, right = at, middle
        for i = at, stop - 1 do
          if left < middle and (right >= stop or not comes_before(from[right], from[left])) then
            into[i] = from[left]
            left = left + 1
          else
            into[i] = from[right]
            right = right + 1
          end
        end
        at = stop
      end
      from, into = into, from
      width = width * 2
    end
    if from ~= list then move(from, 1, count, 1, list) end
  end

  R.merge_sort = merge_sort

  local sortable = { i64 = true, f64 = true, string = true, char = true, bool = true }
  local function sort_plain(list, pos, descending)
    if #list < 2 then return end
    local kind = R.kind_of(list[1])
    for i = 2, #list do
      if R.kind_of(list[i]) ~= kind then
        local text = "sort() cannot be called with elements of different types"
        R.raise("ErrorFunctionNotFound", "Function not found: " .. text, pos, { ["function"] = text },
          "sort with a comparer: list.sort(|a, b| if a < b { -1 } else if a > b { 1 } else { 0 })")
      end
    end
    if not sortable[kind] then return end
    merge_sort(list, descending and function(a, b) return a > b end or function(a, b) return a < b end)
  end

  local function sort_by(K, d, pos, list, comparer)
    merge_sort(list, function(a, b)
      local order = R.invoke(K, d, pos, comparer, nil, copy(a), copy(b))
      if order == true then return true end
      return number_type(order) ~= nil and order < 0
    end)
  end

  local function sorter(in_place, descending)
    return function(K, d, pos, list, comparer, extra)
      if extra ~= nil then return nil end
      local target = in_place and list or copy(list)
      if comparer == nil then
        sort_plain(target, pos, descending)
      else
        comparer = callback(comparer)
        if not comparer or descending then return nil end
        local items = snapshot(target)
        sort_by(K, d, pos, items, comparer)
        replace(target, items)
      end
      return in_place and U or target
    end
  end
  R.sorter = sorter
end
