-- error: runtime
("x").upper = print
