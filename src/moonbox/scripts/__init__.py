"""Tool scripts: .lua files that each define one tool, and the library that loads and serves them."""
