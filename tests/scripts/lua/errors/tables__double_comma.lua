-- error: syntax
-- line: 6
-- message: unexpected symbol near ','
-- hint: there are two commas in a row: remove one, or write nil between them

return {1,, 2}
