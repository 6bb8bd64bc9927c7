"""Adapters: each folder here knows one host, and nothing else in the package does."""
