-- error: runtime
-- line: 6
-- message: invalid use of '%' in replacement string
-- hint: % has a meaning in what gsub puts in: write %% for a percent sign

return ("a"):gsub("a", "100%")
