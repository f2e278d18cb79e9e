-- error: syntax
if true then
