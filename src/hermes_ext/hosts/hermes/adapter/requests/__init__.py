"""Requests to the model, in the forms of the providers."""
