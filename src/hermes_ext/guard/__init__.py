"""The guard that keeps the agent's own tools off its rules."""
