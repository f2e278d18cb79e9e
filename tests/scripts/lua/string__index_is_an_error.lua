-- error: runtime
-- message: a string has no field 'x'
-- hint: text is text; if it is JSON, write: json.decode(text).x
return ("abc").x
