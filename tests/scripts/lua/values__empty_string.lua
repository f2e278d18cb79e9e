-- value: ""
return ""
