"""What is needed to test an extension: so far, a model that plays a script."""

from hermes_ext.testing.model_server import ModelRequest, Reply, ScriptedModel, ToolUse

__all__ = ["ModelRequest", "Reply", "ScriptedModel", "ToolUse"]
