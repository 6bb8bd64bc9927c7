"""A turn of Hermes: what was typed, what it becomes, and where Hermes keeps it."""
