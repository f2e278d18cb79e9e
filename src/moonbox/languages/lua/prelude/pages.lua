-- All items of a tool that gives them page by page: `pages`.
--
-- The parameters come from the tool's schema, as the host found them (tools/paging.py); where an answer has its items, and how it
-- goes on, is known here.
return function(host, order, nulls, text_of)
  local type, next, tostring, tonumber, rawget, rawequal = type, next, tostring, tonumber, rawget, rawequal
  local getmetatable, mtype, tointeger = debug.getmetatable, math.type, math.tointeger
  local find, match, gmatch, gsub, format, char = string.find, string.match, string.gmatch, string.gsub, string.format, string.char
  local concat = table.concat
  local null, length = host.null, nulls.length
  local MOST_PAGES, MOST_NAMES = 1000, 12

  local function words(text)
    local list = {}
    for word in gmatch(text, "%S+") do list[#list + 1] = word end
    return list
  end

  local function whole(value)
    if type(value) == "number" then return tointeger(value) end
  end

  local ITEMS = words("items data results result records rows values entries objects nodes edges list")
  local AFTER = "next_cursor nextCursor next_page_token nextPageToken next_token nextToken continuation_token "
    .. "continuationToken next_page nextPage next_offset nextOffset next"
  local NEXT, NULL_AT_END = words(AFTER .. " end_cursor endCursor after cursor"), words(AFTER)
  local MORE = words("has_more hasMore has_next hasNext has_next_page hasNextPage more")
  local LAST = words("is_last isLast last_page lastPage")
  local TOTAL = words("total total_count totalCount total_results totalResults")
  local PAGES = words("total_pages totalPages page_count pageCount pages num_pages numPages")
  local INSIDE = words("meta metadata pagination paging page_info pageInfo links _links cursors response_metadata page")
  local LOOKED_FOR = "cursor, page_token, next_token, starting_after, page, offset"

  local function is_list(value)
    return type(value) == "table" and (rawequal(getmetatable(value), host.array) or length(value) > 0)
  end

  local function names_of(t)
    local names = order.names(t, MOST_NAMES)
    return names ~= "" and names or "none"
  end

  -- The first of these fields that an answer has, in it or in a part of it that is about paging; and its name.
  local function field(answer, names, depth)
    if type(answer) ~= "table" then return nil end
    for index = 1, #names do
      local value = rawget(answer, names[index])
      if value ~= nil and value ~= null and value ~= "" and not is_list(value) then return value, names[index] end
    end
    for index = 1, depth and #INSIDE or 0 do
      local value, name = field(rawget(answer, INSIDE[index]), names, depth > 1 and depth - 1 or nil)
      if value ~= nil then return value, name end
    end
  end

  -- Whether an answer, or a part of it that is about paging, says with null, "" or false that nothing comes after it.
  local function says_end(answer, depth)
    if type(answer) ~= "table" then return false end
    local _, absent = nulls.of(answer)
    for index = 1, #NULL_AT_END do
      local value = rawget(answer, NULL_AT_END[index])
      if value == null or value == "" or value == false or absent and absent[NULL_AT_END[index]] then return true end
    end
    for index = 1, depth > 0 and #INSIDE or 0 do
      if says_end(rawget(answer, INSIDE[index]), depth - 1) then return true end
    end
    return false
  end

  -- The items of an answer; or nil, and what is wrong.
  local function items_of(answer)
    if is_list(answer) then return answer end
    if type(answer) ~= "table" then return nil, "it is a " .. host.kind(answer) end
    local only, several
    for index = 1, #ITEMS do
      if is_list(rawget(answer, ITEMS[index])) then return rawget(answer, ITEMS[index]) end
    end
    for key, value in order.each(answer) do
      if is_list(value) then only, several = value, only ~= nil end
    end
    if only and not several then return only end
    return nil, format("it looked for one list, or for %s; the answer has the keys: %s", concat(ITEMS, ", "), names_of(answer))
  end

  -- The value of a parameter in the address of a link.
  local function in_link(link, name)
    local query = match(link, "%?([^#]*)")
    for key, value in gmatch(query or "", "([^&=]+)=([^&]*)") do
      if key == name then
        return (gsub(gsub(value, "+", " "), "%%(%x%x)", function(hex) return char(tonumber(hex, 16)) end))
      end
    end
  end

  -- What an answer says about the one after it: a cursor or link, its field, and whether there is more, if it says so. `count` is the
  -- number of items so far: a null is not the end of a total that is larger.
  local function continuation(answer, count)
    if is_list(answer) then return nil, nil, nil end
    local value, name = field(answer, NEXT, 2)
    if type(value) == "table" then value = field(value, words("href url cursor token page offset")) end
    local more, last = field(answer, MORE, 2), field(answer, LAST, 2)
    if more == nil and type(last) == "boolean" then more = not last end
    if type(more) ~= "boolean" then more = nil end
    if value == false then value = nil end
    if more == nil and value == nil and says_end(answer, 2) and (whole(field(answer, TOTAL, 2)) or 0) <= count then more = false end
    return value, name, more
  end

  local function by_cursor(form, args, answer, items, count)
    local value, name, more = continuation(answer, count)
    if more == false then return nil end
    if name == "cursor" and value == args[form.cursor] then value = nil end -- the one that was sent
    if value == true then value = nil end
    if type(value) == "string" and find(value, "^%a*:?/?/?[^%s]*%?") then value = in_link(value, form.cursor) or value end
    if value ~= nil then return form.cursor, value end
    local last = items[length(items)]
    if more and form.cursor == "starting_after" and type(last) == "table" then return form.cursor, rawget(last, "id") end
    if more then
      return nil, nil, format("its answer says that there is more, but has no cursor: pages looked for %s; the answer has the keys: %s",
        concat(NEXT, ", "), names_of(answer))
    end
  end

  -- By number: pages are counted from 1 unless the first answer counts otherwise, offsets from 0.
  local function by_number(form, args, answer, items, count)
    local value, _, more = continuation(answer, count)
    local size, name = length(items), form.page or form.offset
    if more == false or size == 0 then return nil end
    local given = type(value) == "string" and (tonumber(in_link(value, name)) or tonumber(value)) or value
    if whole(given) then return name, whole(given) end
    local at = whole(args[name]) or form.page and (whole(field(answer, { name, "page" }, 2)) or 1) or 0
    local following = at + (form.page and 1 or size)
    if more == nil and not is_list(answer) then
      local total, pages = whole(field(answer, TOTAL, 2)), whole(field(answer, PAGES, 2))
      if form.page and pages and at >= pages or form.offset and not form.page and total and following >= total then return nil end
      if form.page and total and total <= size then return nil end
    end
    local limit = form.limit and whole(args[form.limit])
    if more == nil and limit and size < limit then return nil end
    return name, following
  end

  -- Of a tool without such parameters: everything came at once, unless the answer says otherwise.
  local function at_once(_, _, answer, items, count)
    local value, _, more = continuation(answer, count)
    local total = not is_list(answer) and whole(field(answer, TOTAL, 2))
    if more == false or more == nil and value == nil and (not total or total <= length(items)) then return nil end
    return nil, nil, format("it has more items, but no parameter to ask for them: pages looked for %s; the answer has the keys: %s",
      LOOKED_FOR, names_of(answer))
  end

  -- `max` items, `keep` as long as it does not return false.
  local function taker(items, count, max, keep)
    return function(page)
      for index = 1, length(page) do
        local item = page[index]
        if max and count >= max or keep and keep(item, count + 1) == false then return count, true end
        count = count + 1
        items[count] = item
      end
      return count, max ~= nil and count >= max
    end
  end

  local M = {}

  -- All items that `ask(args)` gives, as a list; or nil, and what is wrong. `wish` is nil, a function, or a table with `max`.
  function M.collect(ask, name, form, args, wish)
    local items, current, seen, before = {}, {}, {}, nil
    for key, value in next, args do current[key] = value end
    local take = taker(items, 0, type(wish) == "table" and wish.max or nil, type(wish) == "function" and wish or nil)
    form = form or {}
    local go_on = form.cursor and by_cursor or (form.page or form.offset) and by_number or at_once
    for page = 1, MOST_PAGES do
      local answer = ask(current)
      local list, problem = items_of(answer)
      if not list then return nil, format("the items of %s were not found: %s", name, problem) end
      local count, enough = take(list)
      if enough then return nulls.array(items, count) end
      local parameter, value
      parameter, value, problem = go_on(form, current, answer, list, count)
      if problem then return nil, format("%s cannot be paged further: %s", name, problem) end
      if parameter == nil then return nulls.array(items, count) end
      local mark, first = type(value) .. tostring(value), length(list) > 0 and text_of(list[1]) .. length(list)
      if seen[mark] then return nil, format("%s does not end: page %d has the %s %s again", name, page, parameter, tostring(value)) end
      if not form.cursor and first and first == before then
        return nil, format("%s does not end: page %d is like the one before, as if '%s' had no effect", name, page, parameter)
      end
      seen[mark], before, current[parameter] = true, first, value
    end
    return nil, format("%s does not end: it has more than %d pages; ask for fewer items, pages(tool, args, {max = 100})", name, MOST_PAGES)
  end

  -- What a wish must be; the message where it is something else.
  function M.problem_with(wish)
    if wish == nil or type(wish) == "function" then return nil end
    if type(wish) ~= "table" then return "the third argument must be {max = n}, or a function that returns false to stop, not a " .. host.kind(wish) end
    for key in order.each(wish) do
      if key ~= "max" then return "the option is 'max', not '" .. tostring(key) .. "'" end
    end
    local max = rawget(wish, "max")
    if max ~= nil and (mtype(max) ~= "integer" or max < 1) then return "max must be a whole number of at least 1" end
    return nil
  end

  return M
end
