-- attack: climb out of the environment through _G and _ENV
-- value: true
-- value: null
-- value: null
return _G == _ENV and _G._G._G._G == _G, _G._ENV, rawget(_ENV, "debug")
