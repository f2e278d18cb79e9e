"""The generated pages of the documentation: what the code says of itself."""
