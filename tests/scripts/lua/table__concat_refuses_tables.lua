-- error: runtime
-- message has: at index 2
return table.concat({ "a", {} })
