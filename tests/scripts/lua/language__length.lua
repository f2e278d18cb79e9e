-- value: 3
-- value: 5
return #{ 1, 2, 3 }, #"hello"
