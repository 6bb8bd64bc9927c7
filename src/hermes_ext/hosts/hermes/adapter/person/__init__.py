"""What a person is told and asked, and the commands that they type."""
