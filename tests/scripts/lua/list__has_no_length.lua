-- error: runtime
-- line: 4
-- message: 'list' is the library here, not a list of yours: globals of that name last for one run; use another name
return #list
