"""A project's own extensions: where they lie, what they are, whether the user trusts them."""
