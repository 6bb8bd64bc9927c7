"""Turns and what belongs to them: state, requests, questions to a person, the decision log."""
