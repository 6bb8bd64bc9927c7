"""`_config`: what the `extensions` section means, and what is told where it means nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hermes_ext.settings.config import ExtensionsConfig, read_config

FEATURE_REQUEST = """\
# ~/.hermes/config.yaml
extensions:
  enabled: true
  global_dir: ~/.hermes/extensions/
  project_local: true  # load from .hermes/extensions/ in cwd

  # Per-extension config (optional)
  workflow-guard:
    plan_path: plans/active/plan.md
    blocked_tools: [write, edit, patch]
    allowed_paths: [plans/, handoff/]
"""

EVERY_KEY = """\
extensions:
  enabled: false
  global_dir: /srv/ext
  project_local: false
  on: [workflow-guard]
  disabled: [noisy-thing, "other:before_llm_call"]
  required: [workflow-guard]
  overridable: [a]
  project_may_set: ["workflow-guard.plan_path"]
  observe: [new-rule]
  ask_without_human: approve
  confine_minimum: landlock
  confine_unavailable: ask
  log: payloads
  reload: false
  state_days: 1.5
  priorities: {b: 5, "b:before_llm_call": -1}
  workflow-guard: {plan_path: p.md}
"""


def read(tmp_path: Path, text: str | bytes) -> ExtensionsConfig:
    file = tmp_path / "config.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_config(tmp_path)


def told(config: ExtensionsConfig) -> str:
    return "\n".join(map(str, config.problems))


def test_feature_request_sample_is_accepted(tmp_path, monkeypatch):
    """The feature request's own configuration has no problem and means what it says."""
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    config = read(tmp_path, FEATURE_REQUEST)
    assert config.problems == ()
    assert config.enabled
    assert config.project_local
    assert config.global_dir == tmp_path / "user/.hermes/extensions"
    assert config.settings_of("workflow_guard") == {
        "plan_path": "plans/active/plan.md",
        "blocked_tools": ["write", "edit", "patch"],
        "allowed_paths": ["plans/", "handoff/"],
    }


def test_every_key_is_read(tmp_path):
    """Each reserved key of the section reaches its field."""
    config = read(tmp_path, EVERY_KEY)
    assert config.problems == ()
    assert not config.enabled
    assert not config.project_local
    assert not config.reload
    assert config.global_dir == Path("/srv/ext")
    assert config.global_dir_given
    assert config.is_on("Workflow_Guard")
    assert config.is_disabled("noisy thing")
    assert not config.is_disabled("other")
    assert config.hooks_off("OTHER") == {"before_llm_call"}
    assert config.is_required("workflow-guard")
    assert config.is_overridable("A")
    assert config.project_may_set == ("workflow-guard.plan_path",)
    assert config.is_observed("new_rule")
    assert (config.ask_without_human, config.log, config.state_days) == ("approve", "payloads", 1.5)
    assert (config.confine_minimum, config.confine_unavailable) == ("landlock", "ask")
    assert config.priority_of("b", "before_llm_call") == -1
    assert config.priority_of("B", "intercept_tool_call") == 5
    assert config.priority_of("c", "before_llm_call") is None
    assert [*config.settings] == ["workflow-guard"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "model: {}\n", "extensions:\n", "~\n"])
def test_nothing_written_means_the_defaults(tmp_path, text):
    """An empty file, a file without the section and an empty section are the defaults."""
    config = read(tmp_path, text)
    assert config.problems == ()
    assert config.readable
    assert config.enabled
    assert config.global_dir == tmp_path / "extensions"
    assert not config.global_dir_given
    assert (config.on, config.disabled, config.required) == ((), (), ())
    assert (config.ask_without_human, config.log, config.state_days) == ("block", "decisions", 30)
    assert (config.confine_minimum, config.confine_unavailable) == ("namespaces", "block")


def test_a_missing_file_means_the_defaults(tmp_path):
    """Without config.yaml there is no problem."""
    config = read_config(tmp_path)
    assert config.problems == ()
    assert config.enabled


def test_null_means_the_default_for_every_key(tmp_path):
    """An explicit null is the default of its key, and no problem."""
    keys = [line.split(":")[0].strip() for line in EVERY_KEY.splitlines()[1:]]
    config = read(tmp_path, "extensions:\n" + "".join(f"  {key}:\n" for key in keys))
    assert config.problems == ()
    assert config.enabled
    assert config.on == ()
    assert config.settings == {"workflow-guard": None}


@pytest.mark.parametrize(
    ("value", "names", "expected"),
    [
        ("[a]", ("a",), ""),
        (
            "a",
            ("a",),
            "found the string 'a', expected a list of names; taken as a. Write `on: [a]`",
        ),
        ("'[a]'", ("a",), "taken as a. Take the quotes around the list away"),
        ("a, b", ("a", "b"), "taken as a, b. Write `on: [a, b]`"),
        ("{a: true, b: false}", ("a",), "found a mapping, expected a list of names; taken as a."),
        ("{a: {}}", ("a",), "Write `on: [a]`"),
        ("a/b", (), "found the string 'a/b', expected a list of names; so nothing is on"),
        ("'[]'", (), "so nothing is on. Take the quotes around the list away"),
        ("null", (), ""),
        ("[]", (), ""),
        ("[1, no, a]", ("a",), 'YAML reads no as a bool; if it is a name, write "no"'),
        ("[a, a, A]", ("a",), ""),
        ("[[a], b]", ("b",), "found a list, expected a name"),
        ("true", (), "found the boolean 'true', expected a list of names"),
        ("[a/b, '../x', '']", (), "names no extension"),
        ("['a:before_llm_call']", (), "names one hook"),
        ("['!!bool perhaps', !!bool perhaps]", ("!!bool perhaps",), "found the boolean 'perhaps'"),
    ],
)
def test_on_is_a_list_or_a_problem(tmp_path, value, names, expected):
    """Each shape of `on` gives a set of names, or a problem with line, key, found and expected."""
    config = read(tmp_path, f"extensions:\n  enabled: true\n  on: {value}\n")
    assert config.on == names
    assert bool(config.problems) == bool(expected)
    assert expected in told(config)
    assert all(str(each).startswith(f"{config.file}:3: extensions.on") for each in config.problems)


@pytest.mark.parametrize("key", ["disabled", "observe", "overridable", "project_may_set"])
@pytest.mark.parametrize("value", ["guard", "'[guard]'", "{guard: true}", "true", "1"])
def test_a_malformed_list_never_loosens_a_rule(tmp_path, key, value):
    """What would switch a rule off does nothing unless it is a list, and says so."""
    config = read(tmp_path, f"extensions:\n  {key}: {value}\n")
    assert getattr(config, key) == ()
    assert f"extensions.{key}: found" in told(config)
    assert "so nothing" in told(config)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "enabled: 'false'",
            "found the string 'false', expected true or false; taken as true. Take",
        ),
        ("enabled: 0", "found the number '0', expected true or false; taken as true"),
        ("project_local: []", "found a list, expected true or false"),
        ("global_dir: [x]", "found a list, expected the path of a directory"),
        ("global_dir: ''", "found the string '', expected the path"),
        ("log: everything", "expected decisions, steps, payloads or off; taken as decisions"),
        ("log: step", 'taken as decisions. Did you mean "steps"?'),
        ("ask_without_human: yes", "expected block or approve; taken as block"),
        ("confine_minimum: none", "expected namespaces or landlock; taken as namespaces"),
        ("confine_minimum: landlok", 'Did you mean "landlock"?'),
        ("confine_unavailable: pass", "expected block or ask; taken as block"),
        ("confine-unavailable: ask", "Write `confine_unavailable`"),
        ("state_days: 0", "expected a number of days above 0; taken as 30"),
        ("state_days: .inf", "expected a number of days above 0; taken as 30"),
        ("state_days: '30'", "found the string '30', expected a number of days"),
        ("priorities: [a]", "found a list, expected a mapping of names to numbers"),
        ("state_days: !!int x", "found the number 'x', expected a number of days"),
        ("enabled: !!bool perhaps", "found the boolean 'perhaps', expected true or false"),
        (f"state_days: {'1' * 5000}", "expected a number of days above 0; taken as 30"),
        ("priorities: {a: !!int x}", "extensions.priorities.a: found the number 'x'"),
        ("priorities: {a_b: 1, a-b: 2}", "priorities.a-b: the same extension as `a_b`"),
        ("priorities: {a: high}", "extensions.priorities.a: found the string 'high'"),
        ("priorities: {'a:before_llm': 1}", 'Did you mean "before_llm_call"?'),
        ("disabled: ['a:intercept_toolcall']", 'Did you mean "intercept_tool_call"?'),
        (
            "disabled: [a: intercept_tool_call]",
            'not used. If it is one hook of an extension, write "a:intercept_tool_call"',
        ),
        ("disabled: 'a:before_llm_call'", "so nothing is disabled"),
        ("on: [a]\n  on: [b]", "extensions.on: given twice (first in line 2); the last one counts"),
        ("a: {b: 1, b: 2}", "extensions.a.b: given twice"),
        ("project-local: no", "is not how this key is written; not used. Write `project_local`"),
        ("my_ext: {}\n  my-ext: {}", "the same extension as `my_ext`"),
        ("'a/b': {}", "is neither a key nor the name of an extension"),
        ("? [a]\n  : {}", "it is not text"),
        ("a: !!python/object:x {}", "extensions.a: cannot be read: the tag python"),
        ("a: {when: 2024-99-99}", "extensions.a: cannot be read"),
    ],
)
def test_a_wrong_value_is_told_and_counts_as_the_default(tmp_path, line, expected):
    """A wrong value gives a problem with its line, and nothing else of the section is lost."""
    config = read(tmp_path, f"extensions:\n  {line}\n  required: [last]\n")
    assert expected in told(config)
    assert config.is_required("last")
    assert config.enabled
    assert config.global_dir == tmp_path / "extensions"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("extensions: [a]\n", "found a list, expected a mapping; the defaults are used"),
        ("extensions: false\n", "Write `extensions: {enabled: false}`"),
        ("extensions: guard\n", "found the string 'guard', expected a mapping"),
        ("extension:\n  on: [a]\n", ":1: extension: is a section that nothing reads"),
        ("Extensions:\n  on: [a]\n", 'the defaults are used. Did you mean "extensions"?'),
        ("extensions: {on: [a]}\nextensions: {on: [b]}\n", ":2: extensions: given twice"),
    ],
)
def test_a_wrong_section_is_told(tmp_path, text, expected):
    """A section of the wrong type or with a slip in its name gives a problem and the defaults."""
    config = read(tmp_path, text)
    assert expected in told(config)
    assert config.enabled
    assert config.readable


@pytest.mark.parametrize("spelled", ["on", "true", "True"])
def test_on_survives_programs_that_read_it_as_true(tmp_path, spelled):
    """A bare `on` that a YAML 1.1 program saved as `true` is still `on`."""
    config = read(tmp_path, f"extensions:\n  {spelled}: [a]\n")
    assert config.on == ("a",)
    assert config.problems == ()


def test_both_spellings_of_on_are_told(tmp_path):
    """Where `on` and the `true` of another program stand side by side, `on` counts."""
    for lines in ("true: [a]\n  on: [b]", "on: [b]\n  true: [a]"):
        config = read(tmp_path, f"extensions:\n  {lines}\n")
        assert config.on == ("b",)
        assert "both keys are `on`" in told(config)


def test_what_hermes_writes_anew_means_the_same(tmp_path):
    """Loading and dumping the file with PyYAML changes nothing of what it means."""
    before = read(tmp_path, EVERY_KEY.replace("payloads", "off"))
    after = read(tmp_path, yaml.safe_dump(yaml.safe_load(EVERY_KEY.replace("payloads", "off"))))
    assert after.problems == ()
    assert after.log == "off"
    assert after == before


@pytest.mark.parametrize(
    "raw",
    [
        b"\xef\xbb\xbfextensions:\n  on: [a]\n",
        b"extensions:\r\n  on: [a]\r\n",
        "# é 😀\nextensions:\n  on: [a]\n  é-guard: {text: 😀}\n".encode(),
    ],
    ids=["bom", "crlf", "utf-8"],
)
def test_encodings_that_are_read(tmp_path, raw):
    """A byte order mark, CRLF and characters beyond ASCII make no difference."""
    config = read(tmp_path, raw)
    assert config.problems == ()
    assert config.on == ("a",)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("extensions: {}\n".encode("utf-16"), "is UTF-16 or binary, expected UTF-8"),
        ("extensions: {}\n".encode("utf-16-le"), "is UTF-16 or binary, expected UTF-8"),
        ("a: 1\nb: é\n".encode("latin-1"), ":2: byte 0xe9 is not UTF-8. Save the file as UTF-8"),
        (b"extensions:\n\ton: [a]\n", ":2: is not valid YAML: "),
        (b"extensions:\n  on: [a\n", "is not valid YAML"),
        (b"- a\n", ":1: found a list, expected a mapping of sections"),
        (b"extensions", ":1: found the string 'extensions', expected a mapping of sections"),
        (b"a: 1\n---\nb: 2\n", ":2: is not valid YAML: found another document"),
        (b"a: 1\nb: \x07\n", ":2: is not valid YAML"),
        (b"a: " + b"[" * 1_000, "nest"),
    ],
    ids=[
        "utf-16",
        "utf-16-le",
        "latin-1",
        "tab",
        "flow",
        "list",
        "text",
        "documents",
        "bell",
        "deep",
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_line(tmp_path, raw, expected):
    """What is not UTF-8 or no YAML is one problem, and the defaults stand."""
    config = read(tmp_path, raw)
    assert len(config.problems) == 1
    assert expected in told(config)
    assert not config.readable
    assert config.enabled
    assert config.on == ()


def test_tabs_are_named_as_the_reason(tmp_path):
    """A file that is indented with tabs says that it is the tabs."""
    assert "no tabs there: use spaces" in told(read(tmp_path, b"extensions:\n\ton: [a]\n"))


def test_a_directory_in_place_of_the_file(tmp_path):
    """An operating system error is a problem, no exception."""
    (tmp_path / "config.yaml").mkdir()
    config = read_config(tmp_path)
    assert "cannot be read" in told(config)
    assert not config.readable


def test_aliases_and_merges_are_followed(tmp_path):
    """Anchors, aliases and merge keys give what they stand for."""
    text = (
        "x: &x {on: [a], observe: [b]}\ny: &y {k: 1}\nextensions:\n  <<: *x\n  g: {<<: *y, l: 2}\n"
    )
    config = read(tmp_path, text)
    assert config.problems == ()
    assert (config.on, config.observe) == (("a",), ("b",))
    assert config.settings_of("g") == {"k": 1, "l": 2}


@pytest.mark.parametrize("value", ["guard", "'[guard]'", "guard, ", "{guard: true}", "[guard]"])
def test_what_is_required_stays_so(tmp_path, value):
    """However the list under `required` is written, the names in it are required."""
    assert read(tmp_path, f"extensions:\n  required: {value}\n").is_required("guard")


@pytest.mark.parametrize(
    ("entry", "path", "may"),
    [
        ("workflow-guard.plan_path", ("plan_path",), True),
        ("Workflow_Guard.plan_path", ("plan_path",), True),
        ("workflow-guard.plan_path", ("plan_path", "deeper"), True),
        ("workflow-guard.plan_path", ("plan",), False),
        ("workflow-guard.plan_path", ("Plan_Path",), False),
        ("workflow-guard.plan_path", (), False),
        ("workflow-guard.a.b", ("a", "b"), True),
        ("workflow-guard.a.b", ("a",), False),
        ("workflow-guard.a.b", ("a.b",), False),
        ("workflow-guard.a.*", ("a", "b"), True),
        ("workflow-guard.a.*", ("a",), False),
        ("workflow-guard.*", ("anything", "at", "all"), True),
        ("workflow-guard", ("anything",), True),
        ("other.plan_path", ("plan_path",), False),
        ("workflow.guard", ("guard",), False),
    ],
)
def test_what_a_project_may_set(tmp_path, entry, path, may):
    """An entry opens the setting that it names and what is below it, and nothing beside it."""
    config = read(tmp_path, f"extensions:\n  project_may_set: [{entry}]\n")
    assert config.problems == ()
    assert config.project_may_set_path("workflow_guard", path) is may


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("'*'", "[0]: '*' names no extension: it has a `*`; not used"),
        ("'*.plan_path'", "names no extension: it has a `*`"),
        ("'guard.plan*'", "'guard.plan*' has a `*` that is not its last part; not used"),
        ("'guard.*.x'", "has a `*` that is not its last part"),
        ("guard..x", "'guard..x' has an empty key"),
        ("guard.", "has an empty key"),
        (".x", "names no extension: the name is empty"),
        ("'guard.tools[0]'", "names an item of a list, which is set as a whole"),
        ("log.x", "the name is one of the keys of the `extensions` section"),
        ("../x", "names no extension"),
        (
            "{guard: plan_path}",
            "[0]: found a mapping, expected a setting; not used. Write it as in",
        ),
        ("1", 'expected a setting; not used. Write it as in "workflow-guard.plan_path"'),
    ],
)
def test_what_project_may_set_cannot_mean(tmp_path, entry, expected):
    """A malformed entry opens nothing and is told with its place."""
    config = read(tmp_path, f"extensions:\n  project_may_set: [{entry}, fine.x]\n")
    assert config.project_may_set == ("fine.x",)
    assert f"{config.file}:2: extensions.project_may_set[0]: " in told(config)
    assert expected in told(config)


def test_values_that_contain_themselves_are_told(tmp_path):
    """A recursive alias is a problem of its extension alone."""
    config = read(tmp_path, "extensions:\n  on: [a]\n  g: &g\n    x: *g\n")
    assert "extensions.g: cannot be read: contains itself" in told(config)
    assert config.on == ("a",)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[]", "extensions.effects: found a list, expected a mapping; not used"),
        ("{command: {}}", "extensions.effects.command: is not a key of this section"),
        ("{commands: []}", "extensions.effects.commands: found a list, expected a mapping of"),
        ("{commands: &c {x: *c}}", "extensions.effects.commands: cannot be read: contains itself"),
        ("{commands: {frob: {cratse: 1}}}", "extensions.effects.commands.frob"),
        ("{commands: {/bin/a: {}}}", "extensions.effects.commands./bin/a"),
        ("{commands: {5: {}}}", "extensions.effects.commands.5: found the number '5' as a name"),
        ("{commands: {yes: {}}}", "extensions.effects.commands.yes: found the boolean 'yes'"),
        ("{commands: {~: {}}}", "extensions.effects.commands.~: found nothing as a name"),
        (
            "{commands: {a: {options: {-1: flag}}}}",
            "extensions.effects.commands.a.options.-1: found the number '-1' as a name",
        ),
        ("{read_only_tools: x}", "extensions.effects.read_only_tools: found "),
        ("{read_only_tools: [{}]}", "extensions.effects.read_only_tools[0]: found a mapping"),
    ],
)
def test_what_effects_cannot_use_is_told_and_left_out(tmp_path, written, expected):
    config = read(tmp_path, f"extensions:\n  on: [a]\n  effects: {written}\n")
    assert f"{config.file}:3: {expected}" in told(config)
    assert config.on == ("a",)
    assert not config.commands
    assert not config.read_only_tools


def test_names_in_quotes_are_text(tmp_path):
    """What quotes make text of is a command like any other; its neighbours count in any case."""
    commands = '{"5": {}, a: {options: {"-1": flag}}, 6: {}}'
    config = read(tmp_path, f"extensions:\n  effects: {{commands: {commands}}}\n")
    assert set(config.commands) == {"5", "a"}
    assert "Write it in quotes" in told(config)


@pytest.mark.parametrize("depth", [150, 250, 500])
@pytest.mark.parametrize(
    "deep",
    [
        lambda depth: "[" * depth + "]" * depth,
        lambda depth: "{a: " * depth + "}" * depth,
        lambda depth: "\n" + "    " + "- " * depth + "x",
        lambda depth: "\n" + "\n".join("    " + " " * n + "a:" for n in range(min(depth, 3000))),
    ],
    ids=["lists", "mappings", "dashes", "indents"],
)
def test_deep_nesting_is_a_problem_and_no_crash(tmp_path, depth, deep):
    """However deep a value goes and whatever it is made of, the result is a problem."""
    config = read(tmp_path, f"extensions:\n  on: [a]\n  g: {deep(depth)}\n")
    assert "nest" in told(config) or "deep" in told(config)


def test_lines_of_values(tmp_path):
    """`line_of` finds a value, and for one that is not there what would hold it."""
    config = read(
        tmp_path, "extensions:\n  g:\n    a: 1\n    b:\n      - x\n      - y\n  on: [p]\n"
    )
    assert config.line_of("g", "a") == 3
    assert config.line_of("g", "b", 1) == 6
    assert config.line_of("g", "c") == 3
    assert config.line_of_name("on", "P") == 7


@pytest.mark.parametrize(
    ("lines", "key", "line"),
    [
        ("disabled:\n    - 'G:before_llm_call'\n    - g", "disabled", 4),
        ("disabled:\n    - [x]\n    - 'g:before_llm_call'", "disabled", 4),
        ("project_may_set:\n    - x.y\n    - g.plan.path", "project_may_set", 4),
        ("priorities:\n    x: 1\n    'g:before_llm_call': 1", "priorities", 4),
        ("required:\n    - x\n    - y", "required", 3),
    ],
)
def test_lines_of_names(tmp_path, lines, key, line):
    """A name is found with a hook or a setting behind it too; alone it is found first."""
    config = read(tmp_path, f"extensions:\n  {lines}\n")
    assert config.line_of_name(key, "g") == line


def test_a_path_is_relative_to_the_home(tmp_path, monkeypatch):
    """`global_dir` may begin with `~`, be absolute, or start at the Hermes home."""
    monkeypatch.setenv("HOME", "/home/someone")
    assert read(tmp_path, "extensions: {global_dir: ~/x}\n").global_dir == Path("/home/someone/x")
    assert read(tmp_path, "extensions: {global_dir: ./x}\n").global_dir == tmp_path / "x"


def test_the_locale_makes_no_difference(tmp_path):
    """Under `LC_ALL=C` the same file is read, and its problems can be printed."""
    text = "extensions:\n  on: [é-guard]\n  observe: é😀\n"
    (tmp_path / "config.yaml").write_bytes(text.encode())
    program = (
        "import sys; from pathlib import Path; from hermes_ext.settings.config import read_config\n"
        "config = read_config(Path(sys.argv[1])); print(ascii(config.on), len(config.problems))"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", program, str(tmp_path)],
        env=os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n")[0] == "('\\xe9-guard',) 1"
