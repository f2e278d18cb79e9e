local found = array{}
for _, hit in ipairs(tools.search_documents{query = "supply agreement", kind = "contract"}) do
  local text = tools.read_document{id = hit.id}.text
  local days = tonumber(text:match("with (%d+) days' notice"))
  if days and days > 60 then table.insert(found, {id = hit.id, days = days}) end
end
return found
