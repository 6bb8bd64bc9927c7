"""What of Hermes is wrapped, and what follows where a function is missing."""
