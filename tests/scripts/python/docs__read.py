# value: ["add", true, true, null, true]
[docs.search("add two numbers", 1)[0]["name"], "Add two numbers" in docs.describe("add"), docs.get("print") is not None, docs.get("nothing"), "pages" in docs.names()]
