-- value: true
local e = {}
local _, caught = pcall(error, e)
return e == caught
