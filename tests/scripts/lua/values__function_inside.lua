-- error: runtime
-- message has: value.items[3].callback is a function, which cannot leave the script
return { items = { {}, {}, { callback = print } } }
