"""What a new extension begins with: for each hook a handler, its setting and its test."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from hermes_ext.__about__ import __version__

__all__ = ["DEFAULT_HOOK", "extension_files"]

DEFAULT_HOOK: Final = "intercept_tool_call"

_WIDTH: Final = 88  # as most formatters have it, unless they are told otherwise


@frozen
class _Part:
    """One handler. names: what it imports from `hermes_ext`; effects: whether it asks what a call
    touches; asserts: what its test imports from `hermes_ext.testing`.
    """

    does: str
    setting: str
    schema: str
    names: tuple[str, ...]
    code: str
    test: str
    asserts: tuple[str, ...]
    quiet: str
    effects: bool = False


def extension_files(name: str, hooks: Sequence[str], *, guard: bool) -> dict[str, str]:
    """The text of each file of a new extension, by its path in the folder.

    Args:
        name: its name, which needs no quoting anywhere.
        hooks: the hooks it has handlers for; each once.
        guard: whether the handlers are guards.
    """
    parts = [(_GUARDS if guard else _TRANSFORMERS)[hook] for hook in hooks]
    module = name.replace("-", "_").lower()
    return {
        "__init__.py": _code(parts),
        "extension.yaml": _manifest(name, parts),
        "README.md": _readme(name, module, parts),
        f"tests/test_{module}.py": _tests(name, parts),
    }


def _code(parts: Sequence[_Part]) -> str:
    names = sorted({"HookResult", *(name for part in parts for name in part.names)})
    imports = _import("hermes_ext", [*names, "register_hook"])
    if any(part.effects for part in parts):
        imports += _import("hermes_ext.effects", ["effects_of"])
    head = f'''"""{_doc(parts)}"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

{imports}'''
    return "\n\n".join([head, *(f"{part.code.strip()}\n" for part in parts)])


def _manifest(name: str, parts: Sequence[_Part]) -> str:
    settings = "".join(part.schema for part in parts)
    minor = ".".join(__version__.split(".")[:2])
    return f"""\
name: {name}
version: 0.1.0
description: >-
{textwrap.fill(_does(parts), _WIDTH - 10, initial_indent="  ", subsequent_indent="  ")}
requires_hermes_ext: ">={minor}"
# JSON Schema of what may stand under `extensions: {name}:` in config.yaml.
config:
  type: object
  additionalProperties: false
  properties:
{settings}"""


def _readme(name: str, module: str, parts: Sequence[_Part]) -> str:
    settings = "".join(f"    {part.setting}\n" for part in parts)
    return f"""\
# {name}

{textwrap.fill(_does(parts), _WIDTH)}

Nothing is set at first, so nothing happens. In `config.yaml` of your Hermes home:

```yaml
extensions:
  {name}:
{settings}```

`__init__.py` has the handlers, `extension.yaml` describes the settings, `tests/test_{module}.py`
proves it all without a model:

```sh
pytest
```
"""


def _tests(name: str, parts: Sequence[_Part]) -> str:
    asserts = sorted({"assert_passed", *(each for part in parts for each in part.asserts)})
    head = f'''"""What README.md says of {name}, proved."""

from __future__ import annotations

from pathlib import Path

{_import("hermes_ext.testing", ["LoadExtension", *asserts])}
EXTENSION = Path(__file__).parents[1]
'''
    quiet = "".join(f"    assert_passed(extension.{part.quiet})\n" for part in parts)
    without = f'''\
def test_nothing_happens_without_settings(load_extension: LoadExtension) -> None:
    """As it comes, it leaves everything as it is."""
    extension = load_extension(EXTENSION)
{quiet}'''
    return "\n\n".join([head, *(f"{part.test.strip()}\n" for part in parts), without])


def _does(parts: Sequence[_Part]) -> str:
    return " ".join(part.does for part in parts)


def _doc(parts: Sequence[_Part]) -> str:
    first, *others = (part.does for part in parts)
    return "\n".join([first, "", *others, ""]) if others else first


def _import(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}\n"
    if len(line) <= _WIDTH:
        return line
    listed = "".join(f"    {name},\n" for name in names)
    return f"from {module} import (\n{listed})\n"


_TRANSFORMERS: Final[Mapping[str, _Part]] = {
    "transform_user_input": _Part(
        does="Writes short forms in what the user typed out.",
        setting='short_forms: {"!t": "Run the tests."}',
        schema="""\
    short_forms:
      type: object
      additionalProperties: {type: string}
      default: {}
      description: What is written for each short form.
""",
        names=("InputResult",),
        code='''
@register_hook("transform_user_input")
def write_out(user_message: str, config: Mapping[str, Any]) -> InputResult:
    """Write short forms out, as the setting `short_forms` has them."""
    forms = config["short_forms"]
    text = " ".join(str(forms.get(word, word)) for word in user_message.split(" "))
    return None if text == user_message else HookResult.rewrite(text)
''',
        test='''
def test_short_forms_are_written_out(load_extension: LoadExtension) -> None:
    """Whole words are replaced, and nothing else."""
    settings = {"short_forms": {"!t": "Run the tests."}}
    extension = load_extension(EXTENSION, config=settings)
    assert_rewritten(extension.input("!t Now."), "Run the tests. Now.")
    assert_passed(extension.input("hello!t"))
''',
        asserts=("assert_rewritten",),
        quiet='input("hello")',
    ),
    "before_llm_call": _Part(
        does="Adds a reminder to the model's instructions.",
        setting='reminder: "Answer in one sentence."',
        schema="""\
    reminder:
      type: string
      default: ""
      description: What the model is told with each request. Empty for nothing.
""",
        names=("RequestResult",),
        code='''
@register_hook("before_llm_call")
def remind(config: Mapping[str, Any]) -> RequestResult:
    """Add the setting `reminder` to the system prompt."""
    reminder = str(config["reminder"])
    return HookResult.inject_system(reminder) if reminder.strip() else None
''',
        test='''
def test_the_model_is_reminded(load_extension: LoadExtension) -> None:
    """The reminder stands at the end of the system prompt."""
    extension = load_extension(EXTENSION, config={"reminder": "Be brief."})
    with extension.turn() as turn:
        outcome = turn.request("hello", "You are an agent.")
        assert_injected(outcome, "Be brief", where="system")
        assert turn.sent.system_prompt == "You are an agent.\\n\\nBe brief."
''',
        asserts=("assert_injected",),
        quiet='request("hello")',
    ),
    "intercept_tool_call": _Part(
        does="Runs other programs in the terminal than those that the model names.",
        setting="replaced_programs: {grep: rg}",
        schema="""\
    replaced_programs:
      type: object
      additionalProperties: {type: string}
      default: {}
      description: What is run in place of each program at the start of a command.
""",
        names=("CallResult",),
        code='''
@register_hook("intercept_tool_call", tools=["terminal"])
def replace(tool_args: dict[str, Any], config: Mapping[str, Any]) -> CallResult:
    """Run other programs, as the setting `replaced_programs` has them."""
    program, blank, rest = str(tool_args.get("command", "")).partition(" ")
    other = config["replaced_programs"].get(program)
    if other is None:
        return None
    return HookResult.rewrite({**tool_args, "command": f"{other}{blank}{rest}"})
''',
        test='''
def test_programs_are_replaced(load_extension: LoadExtension) -> None:
    """Only the program at the start of a command, and only in the terminal."""
    extension = load_extension(EXTENSION, config={"replaced_programs": {"grep": "rg"}})
    outcome = extension.call("terminal", {"command": "grep -n grep notes.txt"})
    assert_rewritten(outcome, {"command": "rg -n grep notes.txt"})
    assert_passed(extension.call("read_file", {"path": "grep"}))
''',
        asserts=("assert_rewritten",),
        quiet='call("terminal", {"command": "ls"})',
    ),
    "transform_tool_result": _Part(
        does="Hides texts in the results of tools from the model.",
        setting="hidden_texts: [Project Bluebird]",
        schema="""\
    hidden_texts:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: What the model sees as [hidden].
""",
        names=("ToolOutputResult",),
        code='''
@register_hook("transform_tool_result")
def hide(result: str, config: Mapping[str, Any]) -> ToolOutputResult:
    """Replace the texts of the setting `hidden_texts`."""
    shown = result
    for text in config["hidden_texts"]:
        shown = shown.replace(str(text), "[hidden]")
    return None if shown == result else HookResult.rewrite(shown)
''',
        test='''
def test_texts_are_hidden(load_extension: LoadExtension) -> None:
    """Wherever they stand in a result."""
    extension = load_extension(EXTENSION, config={"hidden_texts": ["Bluebird"]})
    outcome = extension.result("read_file", {"path": "notes.txt"}, "On Bluebird: late.")
    assert_rewritten(outcome, "On [hidden]: late.")
''',
        asserts=("assert_rewritten",),
        quiet='result("read_file", {"path": "notes.txt"}, "dull")',
    ),
}

_GUARDS: Final[Mapping[str, _Part]] = {
    "transform_user_input": _Part(
        does="Refuses requests that name certain words.",
        setting="refused_words: [payroll]",
        schema="""\
    refused_words:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: A request with one of them is not answered. Case does not matter.
""",
        names=("InputVerdict",),
        code='''
@register_hook("transform_user_input", guard=True)
def refuse_request(user_message: str, config: Mapping[str, Any]) -> InputVerdict:
    """Refuse what names one of the setting `refused_words`."""
    for word in config["refused_words"]:
        if str(word).casefold() in user_message.casefold():
            return HookResult.block(f"This is not discussed here: {word}.")
    return None
''',
        test='''
def test_words_are_refused(load_extension: LoadExtension) -> None:
    """In any case of the letters."""
    extension = load_extension(EXTENSION, config={"refused_words": ["payroll"]})
    outcome = extension.input("Show me the Payroll")
    assert_blocked(outcome, by=extension.name, match="payroll")
    assert_passed(extension.input("Show me the plan"))
''',
        asserts=("assert_blocked",),
        quiet='input("hello")',
    ),
    "before_llm_call": _Part(
        does="Ends a turn that makes too many requests to the model.",
        setting="most_requests: 20",
        schema="""\
    most_requests:
      type: [integer, "null"]
      minimum: 1
      default: null
      description: How many requests one turn may make. null for no limit.
""",
        names=("RequestVerdict",),
        code='''
@register_hook("before_llm_call", guard=True)
def limit_requests(
    config: Mapping[str, Any], api_call_count: int = 1
) -> RequestVerdict:
    """Refuse requests beyond the setting `most_requests`."""
    limit = config["most_requests"]
    if limit is not None and api_call_count > limit:
        return HookResult.block(f"This turn has made its {limit} requests.")
    return None
''',
        test='''
def test_requests_of_a_turn_are_limited(load_extension: LoadExtension) -> None:
    """The next turn begins at zero."""
    extension = load_extension(EXTENSION, config={"most_requests": 2})
    for _ in range(2):
        with extension.turn() as turn:
            assert_passed(turn.request())
            assert_passed(turn.request())
            assert_blocked(turn.request(), by=extension.name, match="2 requests")
''',
        asserts=("assert_blocked",),
        quiet='request("hello")',
    ),
    "intercept_tool_call": _Part(
        does="Refuses tool calls that would start certain programs.",
        setting="refused_programs: [shutdown, reboot]",
        schema="""\
    refused_programs:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: Programs that no tool call may start, by name.
""",
        names=("CallVerdict", "ToolCall"),
        code='''
@register_hook("intercept_tool_call", guard=True)
def refuse_programs(event: ToolCall, config: Mapping[str, Any]) -> CallVerdict:
    """Refuse what would start one of the setting `refused_programs`."""
    for command in effects_of(event).commands:
        if command.name in config["refused_programs"]:
            return HookResult.block(f"{command.name} is not to be run here.")
    return None
''',
        test='''
def test_programs_are_refused(load_extension: LoadExtension) -> None:
    """Wherever they stand in a command, and nothing else that bears their name."""
    extension = load_extension(EXTENSION, config={"refused_programs": ["reboot"]})
    outcome = extension.call("terminal", {"command": "cd / && sudo reboot"})
    assert_blocked(outcome, by=extension.name, match="reboot")
    assert_passed(extension.call("terminal", {"command": "echo reboot"}))
''',
        asserts=("assert_blocked",),
        quiet='call("terminal", {"command": "ls"})',
        effects=True,
    ),
    "transform_tool_result": _Part(
        does="Withholds results of tools that name certain words from the model.",
        setting="withheld_words: [confidential]",
        schema="""\
    withheld_words:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: A result with one of them is withheld. Case does not matter.
""",
        names=("ToolOutputVerdict",),
        code='''
@register_hook("transform_tool_result", guard=True)
def withhold(result: str, config: Mapping[str, Any]) -> ToolOutputVerdict:
    """Withhold what names one of the setting `withheld_words`."""
    for word in config["withheld_words"]:
        if str(word).casefold() in result.casefold():
            return HookResult.block(f"This result is withheld: it is {word}.")
    return None
''',
        test='''
def test_results_are_withheld(load_extension: LoadExtension) -> None:
    """In any case of the letters."""
    extension = load_extension(EXTENSION, config={"withheld_words": ["secret"]})
    outcome = extension.result("read_file", {"path": "notes.txt"}, "Top SECRET")
    assert_blocked(outcome, by=extension.name, match="secret")
''',
        asserts=("assert_blocked",),
        quiet='result("read_file", {"path": "notes.txt"}, "dull")',
    ),
}
