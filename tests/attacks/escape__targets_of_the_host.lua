-- attack: call the host's other targets by name
-- value: "nil nil nil nil"
return tostring(tools["sys.time"]) .. " " .. tostring(tools.sys) .. " " .. tostring(tools["../add"]) .. " " .. tostring(tools[1])
