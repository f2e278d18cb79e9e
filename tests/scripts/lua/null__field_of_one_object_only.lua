-- value: [{"a": 1}, {"a": null}, {"a": null}]
local rows = json.decode('[{"a": null}, {"a": null}, {"a": null}]')
rows[1].a = 1
return rows
