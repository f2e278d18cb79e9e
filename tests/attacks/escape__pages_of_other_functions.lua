-- attack: have pages call something that is not a tool, or a tool with what it must not get
-- features: metatables
-- calls: echo rows
-- value: [false, false, false, false, false, true]
local fake = setmetatable({}, { __call = function() return { 1 } end })
return {
  (pcall(pages, print, {})), (pcall(pages, fake, {})), (pcall(pages, docs.search, { "x" })), (pcall(pages, tools, {})),
  (pcall(pages, tools.echo, { value = function() end })) or (pcall(pages, tools.echo, { value = "text" })),
  (pcall(pages, tools.rows, { count = 3 })),
}
