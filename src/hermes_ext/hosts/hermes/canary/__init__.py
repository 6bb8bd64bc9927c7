"""Proves in the installed Hermes that each hook fires exactly once per event and is honoured."""
