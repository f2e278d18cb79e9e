-- value: 10.0
os.difftime(20, 10)
