"""Python code, read by its syntax tree."""
