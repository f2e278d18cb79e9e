-- value: true
-- value: 5
z = 5
return _G._G == _G, _G.z
