"""Generated commands are really run, and compared with what `effects_of` said before."""
