-- value: ""
return ("abc"):sub(10)
