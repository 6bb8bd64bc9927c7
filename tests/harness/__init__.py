"""What the tests use to run the real Hermes Agent offline."""
