"""What is on disk: finding, checking and loading extensions, and the user's configuration."""
