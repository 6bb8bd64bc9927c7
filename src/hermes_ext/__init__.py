"""Runtime extensions for AI agents."""
