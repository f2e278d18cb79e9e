-- value: "add"
docs.search("add two numbers")[1].name
