"""The agent's own tools do not change the rules, in the real Hermes, while any extension is on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.harness.home import HermesHome
from tests.hermes.stage import play

pytestmark = pytest.mark.hermes

HomeFactory = Callable[..., HermesHome]

# It judges no tool: the guard is there because something is on.
NOTES = """\
from hermes_ext import register_hook


@register_hook('transform_user_input')
def note(user_message):
    return None
"""

# In the home; made before, so that what is there can be compared.
PLACES = (
    "config.yaml",
    ".env",
    "extensions/notes/__init__.py",
    "plugins/other/__init__.py",
    "extensions-trust/trusted.json",
    "logs/extensions.jsonl",
    "cache/hermes-ext/last-load.json",
    "project/.hermes/extensions/rule/__init__.py",
    "project/.hermes/extensions.yaml",
)

DRIVER = r"""
import json
agent = stage.agent(enabled_toolsets=['file', 'terminal', 'code_execution'])
os.environ['HERMES_YOLO_MODE'] = '1'

def way(number, path):
    patch = f'*** Begin Patch\n*** Update File: {path}\n@@\n-OLD\n+NEW\n*** End Patch'
    return (
        ToolUse('write_file', {'path': path, 'content': 'NEW'}),
        ToolUse('patch', {'mode': 'replace', 'path': path, 'old_string': 'OLD',
                          'new_string': 'NEW'}),
        ToolUse('patch', {'mode': 'patch', 'patch': patch}),
        ToolUse('terminal', {'command': f"echo NEW > '{path}'"}),
        ToolUse('execute_code', {'code': f"open({path!r}, 'w').write('NEW')"}),
    )[number]

def tried(paths):
    results = stage.use(agent, *(way(number, path) for number, path in enumerate(paths)))
    return ['is part of the rules' in result for result in results]

refused, changed = {}, []
for place in PLACES:
    before = Path(place).read_bytes()
    refused[place] = tried([place] * 5)
    after = Path(place).read_bytes()
    log = place.endswith('extensions.jsonl')  # which says each time that it was refused
    if not (after.startswith(before) if log else after == before):
        changed.append(place)
neighbours = NEIGHBOURS
refused_beside = tried(neighbours)
written = [Path(path).read_text().strip() for path in neighbours]
commands = {}
for command in COMMANDS:
    (result,) = stage.use(agent, ToolUse('terminal', {'command': command}))
    commands[command] = 'this agent' in result
report(refused=refused, changed=changed, commands=commands, refused_beside=refused_beside,
       written=written)
"""

COMMANDS = (
    "hermes extensions disable notes",
    "hermes-ext trust --yes",
    "hermes-ext uninstall",
    "HERMES_EXT_OFF=1 hermes -z x",
)


def prepared(home: HermesHome) -> list[str]:
    """The protected places of a home and its project, each a file that says OLD."""
    places = []
    for place in PLACES:
        inside = place.removeprefix("project/")
        path = (home.project if inside != place else home.home) / inside
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            text = '{"format": 1, "trusted": []}' if path.suffix == ".json" else "OLD"
            path.write_text(text + "\n")
        places.append(str(path))
    return places


def played(home: HermesHome, places: list[str], commands: tuple[str, ...]) -> dict[str, Any]:
    names = ("a.py", "config.yaml", "hermes.txt", "src/extensions/b.py", ".hermes.py")
    neighbours = [home.project / name for name in names]
    for path in neighbours:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("OLD\n")
    told = {"PLACES": places, "NEIGHBOURS": list(map(str, neighbours)), "COMMANDS": commands}
    driver = DRIVER
    for name, value in told.items():
        driver = driver.replace(name, repr(value))
    # Newer Hermes refuses to overwrite what it has not read.
    return play(home, driver, HERMES_DISABLE_FILE_STATE_GUARD="1")


def test_no_tool_of_the_agent_changes_a_rule(hermes: HomeFactory) -> None:
    """Written, patched in both ways, by the shell and by code: refused, and nothing changed.

    What lies beside these places is free.
    """
    home = hermes(git=True)
    home.extension("notes", NOTES)
    places = prepared(home)
    facts = played(home, places, COMMANDS)
    assert facts["refused"] == dict.fromkeys(places, [True] * 5)
    assert facts["changed"] == []
    assert facts["commands"] == dict.fromkeys(COMMANDS, True)
    assert facts["refused_beside"] == [False] * 5
    assert facts["written"] == ["NEW"] * 5


def test_without_an_extension_nothing_is_refused(hermes: HomeFactory) -> None:
    home = hermes(git=True)
    places = [place for place in prepared(home) if "plugins" in place or "project" in place]
    facts = played(home, places, ())
    assert facts["refused"] == dict.fromkeys(places, [False] * 5)
    assert facts["changed"] == places
