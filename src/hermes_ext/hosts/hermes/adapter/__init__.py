"""The hooks in a running Hermes: what is wrapped there, and what each wrap does."""
