"""Every surface that Hermes has: a turn that came by it is judged like any other."""

from __future__ import annotations

from pathlib import Path

from tests.enforcement.table import Group, Tried, Way, came_of, home_of

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel, ToolUse


class Script:
    """A model that writes a file wherever it is asked to: `write WHERE WHAT`.

    In every turn it calls `write_file` once, and then says that it is done.
    """

    def __init__(self) -> None:
        self.model = ScriptedModel(self._reply)

    def _reply(self, request: ModelRequest) -> Reply:
        if request.tool_results or not request.last_user.startswith("write "):
            return Reply("Done.")
        _, where, what = request.last_user.split()
        return Reply(tool_calls=(ToolUse("write_file", {"path": where, "content": what}),))


def _evil_then_fine(say: object, folder: Path) -> Tried:
    assert callable(say)
    folder.mkdir()
    told = [say(f"write {folder / 'a'} evil"), say(f"write {folder / 'b'} fine")]
    return came_of(folder, told)


def _api_server(base: Path, guarded: bool) -> dict[str, Tried]:
    """All of the API server's endpoints, in one gateway."""
    with Script().model as model:
        home = home_of(base, guarded, model)
        with home.gateway() as gateway:
            return {
                "API server: `/v1/chat/completions`": _evil_then_fine(
                    gateway.ask, home.project / "plain"
                ),
            }


GROUP = Group(
    "surfaces",
    "Every surface a turn can come by",
    [
        Way(
            "API server: `/v1/chat/completions`",
            _api_server,
            how="`hermes gateway run` on loopback, asked over HTTP",
        ),
    ],
)
