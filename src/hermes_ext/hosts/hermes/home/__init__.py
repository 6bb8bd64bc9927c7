"""The package in a Hermes home: put there, taken out, and what it leaves behind."""
