"""What is known of Hermes Agent without running it: its package, home and names."""
