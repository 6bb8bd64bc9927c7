"""A new extension: what it begins with, and its folder."""
