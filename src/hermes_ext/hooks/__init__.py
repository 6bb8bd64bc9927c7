"""What a hook may say: results, events, specs, and how functions are registered for them."""
