-- value: null
return ("abc").x
