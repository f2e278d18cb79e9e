-- error: syntax
-- line: 6
-- message: 'then' expected near 'tehn'
-- hint: did you mean then?

if true tehn return 1 end
