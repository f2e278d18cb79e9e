-- error: runtime
-- line: 6
-- message: bad argument #2 to 'format' (no value)
-- hint: there are more % options than values: give one value for each, and write %% for a percent sign

return string.format("100% done")
