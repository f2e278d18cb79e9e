-- attack: define globals without end
-- limits: {"max_memory": 8000000}
-- error: limit memory
for i = 1, 10000000 do _G["g" .. i] = i end
-- next run
for name in pairs(_G) do if name:find("^g%d") then _G[name] = nil end end
