"""The decision log: who decided what and why, one JSON line per chain.

A line holds digests of what went in and came out, not the values, unless the level is `payloads`.
Nothing here costs the turn more than putting one event in a queue: a thread builds and writes the
lines. Nothing here raises to a turn: a full or read-only disk costs lines, which the next line that
can be written counts.
"""
