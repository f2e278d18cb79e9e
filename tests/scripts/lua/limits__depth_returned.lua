-- limits: {"max_depth": 5}
-- error: limit depth
return { { { { { {} } } } } }
-- next run
-- value: [[[[[]]]]]
return { { { { array{} } } } }
