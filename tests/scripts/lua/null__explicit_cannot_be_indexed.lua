-- error: runtime
-- message has: attempt to index a null value (field 'x')
return json.null.x
