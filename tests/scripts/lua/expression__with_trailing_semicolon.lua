-- value: 4
2 + 2;
