-- value: {}
return {}
