local schema = {type = "object", properties = {topic = {enum = {"delivery", "invoice", "quality"}}}, required = {"topic"}}
local topics = parallel.map(tools.list_letters(), function(id)
  return llm("Is this letter about delivery, invoice or quality? " .. tools.read_letter{id = id}, schema).topic
end)
return list.count_by(topics, function(topic) return topic end)
