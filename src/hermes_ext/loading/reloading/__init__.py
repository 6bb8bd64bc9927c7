"""Reloading: what changed between two turns is in force from the next one on, all of it or nothing.

machine     the states, the events, and the table of what each event does
look        how the configuration and the extensions' files look, without reading them
messages    what is said of changes that are not in force
losses      what would be lost by what is on the disk now: then nothing of it is taken
not_taken   the running processes that have not taken a change
in_force    what is in force, and when it is exchanged
"""
