-- error: runtime
-- line: 6
-- message: invalid use of '%' in replacement string
-- hint: % is special in gsub's replacement: write %% for a percent sign

return ("a"):gsub("a", "100%")
