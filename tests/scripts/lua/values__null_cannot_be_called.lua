-- error: runtime
null()
