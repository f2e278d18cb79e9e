-- value: 5
-- a comment before the expression
2 + 3
