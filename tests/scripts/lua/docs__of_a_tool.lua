-- value: true
-- value: true
return docs["tools.add"]:find("Add two numbers.", 1, true) ~= nil, docs.describe("add") == docs["tools.add"]
