-- value: "X"
("x"):upper()
