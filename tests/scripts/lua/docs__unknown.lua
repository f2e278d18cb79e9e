-- value: null
docs["no such thing"]
