"""Running the handlers of a hook, one after the other, over one value."""
