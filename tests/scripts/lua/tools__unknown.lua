-- error: runtime
tools.ad{ a = 1 }
