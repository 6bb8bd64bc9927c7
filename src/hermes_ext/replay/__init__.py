"""Events that happened, or might, through today's extensions: without a model, without a tool."""
