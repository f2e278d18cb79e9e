"""Tools of the host: Tool, Toolbox, schemas, binding, rendering and search."""
