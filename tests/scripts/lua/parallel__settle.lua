-- value: [{"ok": true, "value": 2}, {"error": {"code": "broken", "data": {"seen": [1, 2]}, "message": "it failed", "retryable": false, "tool": "fail"}, "ok": false}]
-- calls: add fail
parallel.settle{ function() return tools.add(1) end, function() return tools.fail() end }
