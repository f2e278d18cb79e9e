-- value: []
-- value: {"a": []}
return array{}, { a = array{} }
