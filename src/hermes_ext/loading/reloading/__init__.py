"""Reloading: what changed between two turns is in force from the next, all of it or nothing."""
