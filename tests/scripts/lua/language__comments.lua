-- value: 1
--[[ a long
comment ]]
--[==[ another ]==] return 1 -- and one at the end
