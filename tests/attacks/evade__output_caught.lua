-- attack: catch the output limit and print on
-- limits: {"max_output": 10}
-- error: limit output
-- prints: "abcd\nabcd\n"
while true do pcall(print, "abcd") end
