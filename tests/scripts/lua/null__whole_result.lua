-- value: "nil"
-- value: "nil"
-- calls: echo
return type(tools.echo{ value = json.null }), type(json.decode("null"))
