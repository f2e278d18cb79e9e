-- attack: define globals without end
-- limits: {"max_memory": 8000000}
-- error: limit memory
for i = 1, 10000000 do _G["g" .. i] = i end
-- next run
for i = 1, 10000000 do if _G["g" .. i] == nil then break end _G["g" .. i] = nil end
