"""The real Hermes Agent as a process in a scratch home, for tests and for `doctor`."""
