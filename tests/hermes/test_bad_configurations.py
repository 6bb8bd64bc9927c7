"""What people get wrong in their configuration: each is told in one line that says where and what
was expected, and the real agent starts and answers.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from tests.harness.home import HermesHome
from tests.hermes.stage import play
from tests.projects import Place

from hermes_ext.hosts.hermes.facts.host_package import hermes_version
from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

# Two guards of the user's, one with a schema and one with a class: each refuses one text.
BY_SCHEMA = """\
from hermes_ext import HookResult, register_hook


@register_hook("intercept_tool_call", guard=True, tools=["jot"])
def judge(tool_args, config):
    return HookResult.block("no") if tool_args["text"] == config["refused"] else None
"""
SCHEMA = """\
config:
  additionalProperties: false
  properties:
    refused: {type: string, default: one}
    limit: {type: integer}
"""
BY_CLASS = """\
from typing import Literal

from attrs import frozen

from hermes_ext import HookResult, register_hook


@frozen
class Config:
    refused: str = "two"
    level: Literal["low", "high"] = "low"


@register_hook("intercept_tool_call", guard=True, tools=["jot"])
def judge(tool_args, config: Config):
    return HookResult.block("no") if tool_args["text"] == config.refused else None
"""


@frozen
class Row:
    """One bad configuration.

    text: of `config.yaml`. told: what the person must be told, with `FILE` for its path, `HOME`
    for its folder, `PROJECT` for the project's and `VERSION` for Hermes's. refused_by: who refuses
    the call that is for `by-schema` to refuse and the one that is for `by-class`; None: it ran.
    files: further ones of `by-schema`. project: the trusted project's `extensions.yaml`. raw: the
    text is all of the file, which Hermes itself may not be able to read.
    """

    text: str | bytes
    told: str
    refused_by: tuple[str | None, str | None] = ("by-schema", "by-class")
    files: Mapping[str, str] = field(factory=dict)
    project: str | None = None
    raw: bool = False


def section(lines: str) -> str:
    """The lines below `extensions:`."""
    return "extensions:\n" + "".join(f"  {line}\n" for line in lines.splitlines())


NEITHER = (None, None)
ONLY_BY_SCHEMA = ("by-schema", None)
ONLY_BY_CLASS = (None, "by-class")
ALL = ("hermes-ext", "hermes-ext")

ROWS = {
    "enabled is quoted": Row(
        section("enabled: 'false'"),
        "FILE:2: extensions.enabled: found the string 'false', expected true or false; taken as "
        "true. Take the quotes away",
    ),
    "enabled is a number": Row(
        section("enabled: 0"),
        "FILE:2: extensions.enabled: found the number '0', expected true or false; taken as true",
    ),
    "global_dir is a list": Row(
        section("global_dir: [here]"),
        "FILE:2: extensions.global_dir: found a list, expected the path of a directory; not used",
    ),
    "global_dir is nowhere": Row(
        section("global_dir: nowhere"),
        "FILE:2: extensions.global_dir: HOME/nowhere cannot be read: No such file or directory"
        ". No extension of it is in force. Make it a folder that you can read, or remove it",
        NEITHER,
    ),
    "global_dir is a file": Row(
        section("global_dir: config.yaml"),
        "FILE:2: extensions.global_dir: FILE cannot be read: it is a file, not a folder"
        ". No extension of it is in force. Make it a folder that you can read, or remove it",
        NEITHER,
    ),
    "project_local is a word": Row(
        section("project_local: maybe"),
        "FILE:2: extensions.project_local: found the string 'maybe', expected true or false; "
        "taken as true",
    ),
    "on is a quoted list": Row(
        section("on: '[workflow-guard]'"),
        "FILE:2: extensions.on: found the string '[workflow-guard]', expected a list of names; "
        "taken as workflow-guard. Take the quotes around the list away",
        ("workflow-guard", "workflow-guard"),
    ),
    "on has a slip": Row(
        section("on: [workflow-gaurd]"),
        "extension workflow-gaurd is not in force (missing): FILE:2: extensions.on: names "
        '"workflow-gaurd", and no extension of that name is installed. Did you mean '
        '"workflow-guard"? Looked among the bundled ones, the entry points and in HOME/extensions',
    ),
    "on has what is no name": Row(
        section("on: [null, no, a/b]"),
        "FILE:2: extensions.on[0]: found nothing, expected a name; not used\n"
        "FILE:2: extensions.on[1]: found the boolean 'no', expected a name; not used. YAML reads "
        'no as a bool; if it is a name, write "no"\n'
        "FILE:2: extensions.on[2]: 'a/b' names no extension: the name is a path; not used",
    ),
    "disabled is a name": Row(
        section("disabled: by-schema"),
        "FILE:2: extensions.disabled: found the string 'by-schema', expected a list of names; so "
        "nothing is disabled. Write `disabled: [by-schema]`",
    ),
    "disabled names no hook": Row(
        section("disabled: ['by-schema:intercept_toolcall']"),
        "FILE:2: extensions.disabled[0]: no hook is called 'intercept_toolcall'; not used. Did "
        'you mean "intercept_tool_call"?',
    ),
    "disabled has a mapping": Row(
        section("disabled: [by-schema: intercept_tool_call]"),
        "FILE:2: extensions.disabled[0]: found a mapping, expected a name; not used. If it is "
        'one hook of an extension, write "by-schema:intercept_tool_call"',
    ),
    "required is a mapping": Row(
        section("required: {by-schem: true}"),
        "Tool calls are refused because a required extension is not loaded: by-schem (missing: "
        'FILE:2: extensions.required: names "by-schem", and no extension of that name is '
        'installed. Did you mean "by-schema"? Looked among the bundled ones, the entry points '
        "and in HOME/extensions). Repair it, or take it out of extensions.required in FILE\n"
        "FILE:2: extensions.required: found a mapping, expected a list of names; taken as "
        "by-schem. Write `required: [by-schem]`",
        ALL,
    ),
    "overridable is true": Row(
        section("overridable: true"),
        "FILE:2: extensions.overridable: found the boolean 'true', expected a list of names; so "
        "nothing may be replaced. Write `overridable: [name]`",
    ),
    "project_may_set is a mapping": Row(
        section("project_may_set: {by-schema: limit}"),
        "FILE:2: extensions.project_may_set: found a mapping, expected a list of settings; so "
        "nothing may be set by projects. Write it as in `project_may_set: "
        '["workflow-guard.plan_path"]`',
    ),
    "project_may_set is everything": Row(
        section("project_may_set: ['*']"),
        "FILE:2: extensions.project_may_set[0]: '*' names no extension: it has a `*`; not used. "
        'Write it as in "workflow-guard.plan_path"',
    ),
    "observe is a name": Row(
        section("observe: by-schema"),
        "FILE:2: extensions.observe: found the string 'by-schema', expected a list of names; so "
        "nothing is only observed. Write `observe: [by-schema]`",
    ),
    "ask_without_human is yes": Row(
        section("ask_without_human: yes"),
        "FILE:2: extensions.ask_without_human: found the boolean 'yes', expected block or "
        "approve; taken as block",
    ),
    "log has a slip": Row(
        section("log: dicisions"),
        "FILE:2: extensions.log: found the string 'dicisions', expected decisions, steps, "
        'payloads or off; taken as decisions. Did you mean "decisions"?',
    ),
    "state_days is negative": Row(
        section("state_days: -1"),
        "FILE:2: extensions.state_days: found the number '-1', expected a number of days above "
        "0; taken as 30",
    ),
    "reload is a list": Row(
        section("reload: []"),
        "FILE:2: extensions.reload: found a list, expected true or false; taken as true",
    ),
    "priorities is a list": Row(
        section("priorities: [by-schema]"),
        "FILE:2: extensions.priorities: found a list, expected a mapping of names to numbers; "
        "not used",
    ),
    "priorities has words": Row(
        section("priorities:\n  by-schema: high\n  'by-class:before_llm': 1"),
        "FILE:3: extensions.priorities.by-schema: found the string 'high', expected a whole "
        "number; not used\n"
        "FILE:4: extensions.priorities.by-class:before_llm: no hook is called 'before_llm'; not "
        'used. Did you mean "before_llm_call"?',
    ),
    "a setting has the wrong type": Row(
        section("by-schema:\n  limit: many"),
        "extension by-schema is not in force (config-error): FILE:3: extensions.by-schema.limit: "
        "found the string 'many', expected a whole number",
        ONLY_BY_CLASS,
    ),
    "a setting has a slip": Row(
        section("by-schema:\n  limits: 5"),
        "extension by-schema is not in force (config-error): FILE:3: "
        'extensions.by-schema.limits: is not a setting. Did you mean "limit"?',
        ONLY_BY_CLASS,
    ),
    "a setting is no choice": Row(
        section("by-class: {level: mid}"),
        "extension by-class is not in force (config-error): FILE:2: extensions.by-class.level: "
        "found the string 'mid', expected 'low' or 'high'",
        ONLY_BY_SCHEMA,
    ),
    "a setting is none of the class": Row(
        section("by-class: {levle: low}"),
        "extension by-class is not in force (config-error): FILE:2: extensions.by-class.levle: "
        'is not a setting. Did you mean "level"?',
        ONLY_BY_SCHEMA,
    ),
    "the settings are a list": Row(
        section("by-schema: [limit]"),
        "extension by-schema is not in force (config-error): FILE:2: extensions.by-schema: found "
        "a list, expected a mapping of settings",
        ONLY_BY_CLASS,
    ),
    "a setting contains itself": Row(
        section("by-schema: &a\n  refused: *a"),
        "extension by-schema is not in force (config-error): FILE:2: extensions.by-schema: "
        "cannot be read: contains itself",
        ONLY_BY_CLASS,
    ),
    "an unknown key": Row(
        section("requird: [by-schema]"),
        "FILE:2: extensions.requird: is neither a key of the section nor the name of an "
        'installed extension. Did you mean "required"? Looked among the bundled ones, the entry '
        "points and in HOME/extensions",
    ),
    "a key in other letters": Row(
        section("Project-Local: true"),
        "FILE:2: extensions.Project-Local: is not how this key is written; not used. Write "
        "`project_local`",
    ),
    "the section is a list": Row(
        "extensions: [by-schema]\n",
        "FILE:1: extensions: found a list, expected a mapping; the defaults are used. Write "
        "`extensions: {on: [...]}` to turn extensions on",
    ),
    "the section is false": Row(
        "extensions: false\n",
        "FILE:1: extensions: found the boolean 'false', expected a mapping; the defaults are "
        "used. Write `extensions: {enabled: false}` to turn everything off",
    ),
    "the section has a slip": Row(
        "extension:\n  disabled: [by-schema]\n",
        "FILE:1: extension: is a section that nothing reads; the defaults are used. Did you mean "
        '"extensions"?',
    ),
    "the section is given twice": Row(
        "extensions: {log: off}\nextensions: {log: steps}\n",
        "FILE:2: extensions: given twice (first in line 1); the last one counts",
    ),
    "a key is given twice": Row(
        section("on: []\non: []"),
        "FILE:3: extensions.on: given twice (first in line 2); the last one counts",
    ),
    "one name in two spellings": Row(
        section("by_schema: {limit: x}\nby-schema: {limit: 1}"),
        "FILE:3: extensions.by-schema: the same extension as `by_schema`; the last one counts",
    ),
    "behind a byte order mark": Row(
        "\ufeff" + section("log: 5"),
        "FILE:2: extensions.log: found the number '5', expected decisions, steps, payloads or "
        "off; taken as decisions",
    ),
    "with carriage returns": Row(
        section("log: 5").replace("\n", "\r\n"),
        "FILE:2: extensions.log: found the number '5', expected decisions, steps, payloads or "
        "off; taken as decisions",
    ),
    "with tabs": Row(
        "extensions:\n\tlog: off\n",
        "Tool calls are refused because the configuration cannot be read: FILE:2: is not valid "
        "YAML: found character that cannot start any token, while scanning for the next token. "
        "YAML allows no tabs there: use spaces",
        ALL,
        raw=True,
    ),
    "in UTF-16": Row(
        section("log: off").encode("utf-16"),
        "Tool calls are refused because the configuration cannot be read: FILE: is UTF-16 or "
        "binary, expected UTF-8. Save it as UTF-8",
        ALL,
        raw=True,
    ),
    "in Latin-1": Row(
        section("log: off # é").encode("latin-1"),
        "Tool calls are refused because the configuration cannot be read: FILE:2: byte 0xe9 is "
        "not UTF-8. Save the file as UTF-8",
        ALL,
        raw=True,
    ),
    "two documents": Row(
        "a: 1\n---\n" + "",
        "Tool calls are refused because the configuration cannot be read: FILE:2: is not valid "
        "YAML: found another document, expected a single document in the stream",
        ALL,
        raw=True,
    ),
    "the file is a list": Row(
        "- extensions\n",
        "Tool calls are refused because the configuration cannot be read: FILE:1: found a list, "
        "expected a mapping of sections",
        ALL,
        raw=True,
    ),
    "a manifest with no version": Row(
        "",
        "extension by-schema is not in force (load-error): "
        "HOME/extensions/by-schema/extension.yaml:1: requires_hermes: 'soon' is not a version "
        'specifier. Write it as in ">=0.17,<0.20"',
        ONLY_BY_CLASS,
        files={"extension.yaml": "requires_hermes: soon\n"},
    ),
    "a manifest of another Hermes": Row(
        "",
        "extension by-schema is not in force (incompatible): "
        "HOME/extensions/by-schema/extension.yaml:1: requires_hermes: needs hermes-agent <0.1, "
        "found VERSION",
        ONLY_BY_CLASS,
        files={"extension.yaml": "requires_hermes: '<0.1'\n"},
    ),
    "a manifest with a wrong schema": Row(
        "",
        "extension by-schema is not in force (load-error): "
        "HOME/extensions/by-schema/extension.yaml:1: config.type: is not a valid JSON Schema: "
        "'objct' is not one of ['array', 'boolean', 'integer', 'null', 'number', 'object', "
        "'string']",
        ONLY_BY_CLASS,
        files={"extension.yaml": "config: {type: objct}\n"},
    ),
    "a manifest with an unknown key": Row(
        "",
        "HOME/extensions/by-schema/extension.yaml:1: descripton: is not a key of a manifest. Did "
        'you mean "description"?',
        files={"extension.yaml": "descripton: x\n" + SCHEMA},
    ),
    "a manifest in tabs": Row(
        "",
        "extension by-schema is not in force (load-error): "
        "HOME/extensions/by-schema/extension.yaml:2: is not valid YAML: found character that "
        "cannot start any token, while scanning for the next token. YAML allows no tabs there: "
        "use spaces",
        ONLY_BY_CLASS,
        files={"extension.yaml": "config:\n\ttype: object\n"},
    ),
    "a project's file in tabs": Row(
        "",
        "extension own is not in force (config-error): PROJECT/.hermes/extensions.yaml:2: is not "
        "valid YAML: found character that cannot start any token, while scanning for the next "
        "token. YAML allows no tabs there: use spaces",
        project="own:\n\tlimit: 1\n",
    ),
    "a project's file is a list": Row(
        "",
        "extension own is not in force (config-error): PROJECT/.hermes/extensions.yaml:1: found "
        "a list, expected a mapping of extensions to their settings",
        project="- own\n",
    ),
    "a project writes the section's name": Row(
        "",
        "PROJECT/.hermes/extensions.yaml:1: extensions: is not a key of this file; ignored. Write "
        "its content without it",
        project="extensions:\n  own: {limit: 1}\n",
    ),
    "a project disables": Row(
        "",
        "PROJECT/.hermes/extensions.yaml:1: disabled: is a key of the user's own configuration, "
        "which a project cannot set; ignored. Take it away: this file holds settings of "
        "extensions only",
        project="disabled: [by-schema]\n",
    ),
    "a project's settings of its own": Row(
        "",
        "extension own is not in force (config-error): PROJECT/.hermes/extensions.yaml:1: "
        "own.limit: found the string 'many', expected a whole number",
        project="own: {limit: many}\n",
    ),
    "a project names nobody": Row(
        "",
        "PROJECT/.hermes/extensions.yaml:1: by-shema: is the name of no extension that is "
        'installed or in this project; ignored. Did you mean "by-schema"?',
        project="by-shema: {limit: 1}\n",
    ),
    "a project sets a guard": Row(
        "",
        "PROJECT/.hermes/extensions.yaml:1: by-schema.refused: a project sets this only if you "
        'let it, because the extension has a guard; ignored. To let it, add "by-schema.refused" '
        "to extensions.project_may_set in FILE",
        project="by-schema: {refused: nothing}\n",
    ),
    "a project sets what it may, wrongly": Row(
        section("project_may_set: [by-schema]"),
        "PROJECT/.hermes/extensions.yaml:1: by-schema.limit: found the string 'many', expected a "
        "whole number; so nothing of what this project sets for the extension counts",
        project="by-schema: {limit: many, refused: nothing}\n",
    ),
}

DRIVER = """
import io, toolsets
from hermes_constants import reset_hermes_home_override, set_hermes_home_override

# By its defaults, newer Hermes has the model search for tools that are not of these.
toolsets._HERMES_CORE_TOOLS.append("jot")
facts = {}
for name, (home, project) in json.loads(Path("rows.json").read_text()).items():
    os.environ.pop("TERMINAL_CWD", None)  # Hermes 0.17 sets it while it is imported
    os.chdir(project)
    token = set_hermes_home_override(home)  # as a gateway does for the profile of a message
    shown, sys.__stderr__ = sys.__stderr__, io.StringIO()
    try:
        result = stage.say(stage.agent(), "go", Reply(tool_calls=(jot("one"), jot("two"))))
        lines = sys.__stderr__.getvalue().splitlines()
        said = [line for line in lines if not line.endswith("(hermes extensions why)")]
    finally:
        sys.__stderr__ = shown
        reset_hermes_home_override(token)
    facts[name] = {"said": said, "answer": result["final_response"], "results": results_of(result)}
report(**facts)
"""


def furnish(home: HermesHome, name: str, row: Row) -> tuple[Path, Path]:
    """A Hermes home with this configuration and both guards, and a directory to work in."""
    place = Place(home.base / "rows" / name, "project")
    files = {"__init__.py": BY_SCHEMA, "extension.yaml": SCHEMA} | dict(row.files)
    place.add("by-schema", files, to_home=True)
    place.add("by-class", BY_CLASS, to_home=True)
    raw = row.text if isinstance(row.text, bytes) else row.text.encode()
    if not row.raw:
        raw += others(home, model={"context_length": 128_000, "ollama_num_ctx": 0}).encode()
    (place.home / "config.yaml").write_bytes(raw)
    if row.project is not None:
        place.add("own", {"__init__.py": "", "extension.yaml": SCHEMA})
        place.settings(row.project)
        place.trust()
    return place.home, place.root


def others(home: HermesHome, **more: Any) -> str:
    """The sections that make Hermes quick and quiet, below the lines that count."""
    settings = home.config | more
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())


def who(result: str) -> str | None:
    """Whose refusal a tool result is."""
    refused = re.match(r'\{"error": "\[([^\]]+)\]', result)
    return None if refused is None else refused[1]


def test_each_is_told_and_the_agent_answers(hermes: HomeFactory) -> None:
    """Exactly these lines, the answer, and the guards in force or every call refused."""
    home = hermes()
    places = {name: furnish(home, name, row) for name, row in ROWS.items()}
    (home.project / "rows.json").write_text(json.dumps(places, default=str))
    facts = play(home, DRIVER, timeout=300)
    version = str(hermes_version())
    found: dict[str, Any] = {}
    for name, (folder, project) in places.items():
        told = "\n".join(facts[name]["said"]).replace("hermes-ext: ", "")
        told = told.replace(str(folder / "config.yaml"), "FILE").replace(str(folder), "HOME")
        told = told.replace(str(project), "PROJECT").replace(version, "VERSION")
        refused_by = tuple(map(who, facts[name]["results"]))
        found[name] = (told, refused_by, facts[name]["answer"])
    assert found == {name: (row.told, row.refused_by, "Done.") for name, row in ROWS.items()}


@pytest.mark.parametrize(
    ("text", "told", "written"),
    [
        pytest.param(
            "extensions: [by-schema]\n",
            "hermes-ext: FILE:1: extensions: found a list, expected a mapping; the defaults are",
            False,
            id="a section of the wrong type",
        ),
        pytest.param(
            section("by-schema:\n  refusd: a.txt"),
            "hermes-ext: extension by-schema is not in force (config-error): FILE:3: "
            'extensions.by-schema.refusd: is not a setting. Did you mean "refused"?',
            True,
            id="settings of a guard",
        ),
    ],
)
def test_a_start_of_hermes(
    model_factory: ModelFactory, hermes: HomeFactory, text: str, told: str, written: bool
) -> None:
    """`hermes -z` says it once on standard error, and standard output is the answer."""
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    home = hermes(model_factory([Reply(tool_calls=(write,)), Reply("Done.")]))
    guard = BY_SCHEMA.replace("jot", "write_file").replace('"text"', '"path"')
    schema = SCHEMA.replace("one", "a.txt")
    home.extension("by-schema", {"__init__.py": guard, "extension.yaml": schema})
    home.config_path.write_text(text + others(home))
    run = home.oneshot("go").check()
    assert run.stdout == "Done.\n"
    assert run.stderr.count(told.replace("FILE", str(home.config_path))) == 1, run
    assert (home.project / "a.txt").exists() is written


def test_a_start_with_a_file_that_cannot_be_read(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """Where an administrator's settings name the plugin, Hermes starts with it and answers, and
    no tool runs. (Where only the file itself names it, Hermes reads no name, and loads none.)
    """
    write = ToolUse("write_file", {"path": "a.txt", "content": "x"})
    model = model_factory([Reply(tool_calls=(write,)), Reply("Done.")])
    home = hermes(model)
    managed = home.base / "managed"
    managed.mkdir()
    (managed / "config.yaml").write_text(others(home))
    home.config_path.write_text("extensions:\n\ton: [workflow-guard]\n")
    home.extra_env["HERMES_MANAGED_DIR"] = str(managed)
    run = home.oneshot("go")
    if "Hermes stopped" in run.stderr:  # as newer Hermes does by itself
        assert (run.returncode, model.requests) == (2, [])
        return
    assert run.check().stdout == "Done.\n"
    told = f"the configuration cannot be read: {home.config_path}:2: is not valid YAML"
    assert run.stderr.count(told) == 1, run
    assert told in model.main_requests[1].tool_results[0][1]
    assert not (home.project / "a.txt").exists()


def test_a_home_that_is_written_with_a_tilde(
    model_factory: ModelFactory, hermes: HomeFactory
) -> None:
    """`HERMES_HOME='~/.hermes'` is what Hermes takes it for, with the same extensions in force and
    listed: a folder `~` of the working directory in 0.19, the user's own in later releases.
    """
    model = model_factory([Reply("Done.")])
    home = hermes(model)
    home.extension(
        "good",
        "from hermes_ext import HookResult, register_hook\n"
        "@register_hook('before_llm_call')\n"
        "def rule():\n    return HookResult.inject_system('RULE-ONE applies.')\n",
    )
    places = (home.project / "~/.hermes", home.user / ".hermes")
    for place in places:
        shutil.copytree(home.home, place)

    run = home.cli("-z", "go", env={"HERMES_HOME": "~/.hermes"}).check()
    listed = home.cli("extensions", "list", env={"HERMES_HOME": "~/.hermes"})

    assert run.stdout == "Done.\n"
    [request] = model.main_requests
    assert request.system.endswith("RULE-ONE applies.")
    assert "good" in listed.stdout
