# attack: values that look like the marks of the wire
# value: [{"\u0001b": "x"}, {"\u0001m": [[1, 2]]}, {"\u0001f": "nan"}]
[{"\x01b": "x"}, {"\x01m": [[1, 2]]}, {"\x01f": "nan"}]
