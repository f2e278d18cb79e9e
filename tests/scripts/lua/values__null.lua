-- value: null
-- value: {"a": null}
-- value: [1, null, 3]
return null, { a = null }, { 1, null, 3 }
