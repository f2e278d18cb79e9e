-- error: runtime
-- message: a string has no field 'x'
return ("abc").x
