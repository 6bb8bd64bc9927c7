"""Reloading: what changed between two turns is in force from the next one on, all of it or nothing.

look        how the configuration and the extensions' files look, without reading them
losses      what would be lost by what is on the disk now: then nothing of it is taken
not_taken   the running processes that have not taken a change
in_force    what is in force, and when it is exchanged
"""
