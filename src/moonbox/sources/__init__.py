"""Sources of tools that exist already: OpenAPI specifications and databases."""
