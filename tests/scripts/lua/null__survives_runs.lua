row, rows = json.decode('{"a": null}'), json.decode('[null, 2, null]')
-- next run
-- value: {"a": null}
-- value: [null, 2, null]
-- value: 3
return row, rows, #rows
