from __future__ import annotations

import json
import os
import sys

import pytest
import yaml
from tests.cli.conftest import GOOD

from hermes_ext.cli import slash
from hermes_ext.hosts.hermes.facts.host_package import host_package

BROKEN = {
    "native library": "import no_such_native_library\n",
    "syntax": "def broken(:\n",
    "division": "1 / 0\n",
    "exit": "import sys\nsys.exit(9)\n",
    "wrong hook": 'from hermes_ext import register_hook\n@register_hook("on_tool")\ndef f(): ...\n',
    "wrong argument": (
        "from hermes_ext import register_hook\n"
        '@register_hook("intercept_tool_call")\ndef f(tool): ...\n'
    ),
    "registers nothing": "def intercept_tool_call(tool_name): ...\n",
}
SENTINEL = "from pathlib import Path\nPath(__file__).with_suffix('.ran').touch()\n"


def section(home):
    read = yaml.safe_load(home.config.read_text())["extensions"]
    return {"on" if key is True else key: value for key, value in read.items()}


def row(output, name):
    return next(each for each in output.json["extensions"] if each["name"] == name)


# -- list -----------------------------------------------------------------------------------------


def test_an_empty_home_says_where_extensions_go(home):
    """With nothing installed, `list` ends well and tells what to do first."""
    output = home.run("list")

    assert output.code == 0
    assert str(home.path / "extensions") in output.out


def test_list_runs_nothing_of_an_extension(home):
    """`list`, `info`, `enable` and `disable` import no extension."""
    path = home.add("quiet", SENTINEL + GOOD)

    for argv in (["list"], ["info", "quiet"], ["disable", "quiet"], ["enable", "quiet"]):
        assert home.process(*argv).code == 0

    assert not (path / "__init__.ran").exists()


def test_list_shows_what_the_last_load_recorded(home):
    """Hooks are unknown before the first load, and shown with priorities after it."""
    home.add("alpha", manifest="version: '2.1'\n")

    before = home.run("list")
    loading = home.process("list", "--load")
    after = home.run("list")

    assert "not loaded yet" in before.out
    assert loading.code == 0, loading
    assert "intercept_tool_call 40" in after.out
    assert "2.1" in after.out


def test_list_tells_problems_with_file_and_line(home):
    """A name that is nowhere is shown with its line, and with the name that was meant."""
    home.add("alpha")
    home.write_config("extensions:\n  observe:\n  - alhpa\n")

    output = home.run("list")

    assert output.code == 0
    assert f"{home.config}:3" in output.out
    assert 'Did you mean "alpha"?' in output.out


def test_list_of_a_config_that_does_not_parse(home):
    """A config that cannot be read is exit code 1, with its line, and the rest is still listed."""
    home.add("alpha")
    home.write_config("model: m\nextensions:\n\ton: [a]\n")

    output = home.run("list")

    assert output.code == 1
    assert f"{home.config}:3" in output.out
    assert "alpha" in output.out
    assert home.run("info", "alpha").code == 1


def test_the_off_switch_is_told(home, monkeypatch):
    """With HERMES_EXT_OFF set, `list` and `doctor` say that everything is off."""
    home.add("alpha")
    monkeypatch.setenv("HERMES_EXT_OFF", "1")

    listed, examined = home.run("list"), home.process("doctor")

    assert "Everything is off: $HERMES_EXT_OFF" in listed.out
    assert listed.out.count("disabled") >= 1
    assert "HERMES_EXT_OFF turns every extension off" in examined.out


def test_a_home_without_the_plugin_is_told(home):
    """Where Hermes would load nothing, `enabled` is not left to be believed; `install` mends it."""
    home.add("alpha")
    told = f"plugins.enabled in {home.config} does not name hermes-ext; run hermes-ext install"
    expected = told if host_package() else None

    for argv in (["list"], ["info", "alpha"], ["enable", "alpha"], ["disable", "alpha"]):
        assert home.run(*argv, "--json").json["not_in_force"] == expected
        assert (f"Not in force: {told}." in home.run(*argv).out) == bool(expected)

    home.run("install")
    assert home.run("list", "--json").json["not_in_force"] is None
    assert "Not in force" not in home.run("list").out


# -- broken extensions ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_extension_locks_nothing(home, kind):
    """`list` works, `--load` and `doctor` tell it, and it can be disabled."""
    home.add("broken-one", BROKEN[kind])
    home.add("alpha")
    home.run("install")

    assert home.process("list").code == 0
    loading = home.process("list", "--load", "--json")
    assert loading.code == 1, loading
    assert row(loading, "alpha")["loaded"]
    examined = home.run("doctor", "--json")
    assert examined.code == 1, examined
    about = [each for each in examined.json["findings"] if each["extension"] == "broken-one"]
    assert [each["severity"] for each in about] == ["error"]

    ordered = home.process("list", "--order", "before_llm_call")
    assert ordered.code == 1
    assert "broken-one: " in ordered.out

    assert home.process("disable", "broken-one").code == 0
    assert home.process("list", "--load").code == 0


def test_what_an_extension_prints_is_not_in_the_json(home):
    """stdout is one JSON value, whatever an extension prints on any level while loading."""
    noisy = (
        "import os, subprocess, sys\nprint('noise one')\nsys.__stdout__.write('noise two')\n"
        "os.write(1, b'noise three')\nsubprocess.run(['echo', 'noise four'])\n"
    )
    home.add("noisy", noisy + GOOD)

    for command in (["list", "--load", "--json"], ["doctor", "--json"]):
        output = home.process(*command)
        assert output.json
        assert "noise" not in output.out
        assert all(f"noise {word}" in output.err for word in ("one", "two", "three", "four"))


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("import os\nos._exit(3)\n", "exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "SIGKILL"),
    ],
    ids=["os._exit", "killed"],
)
def test_an_extension_that_ends_the_process_is_named(home, code, told):
    """What ends the loading process itself is found by name; command and configuration survive."""
    home.add("alpha")
    home.add("zz-killer", code)

    loading, examined = home.process("list", "--load", "--json"), home.process("doctor", "--json")

    assert loading.code == examined.code == 1
    assert row(loading, "zz-killer")["status"] == "load-error"
    assert told in row(loading, "zz-killer")["reason"]
    stopped = [each for each in examined.json["findings"] if each["code"] == "load-stopped"]
    assert [each["extension"] for each in stopped] == ["zz-killer"]


def test_an_import_that_never_ends_meets_a_deadline(home):
    """An endless import is an error row within the deadline; the others are loaded."""
    home.add("endless", "import threading\nthreading.Event().wait()\n")
    home.add("alpha")

    loading = home.process("list", "--load", "--json", "--deadline", "12")

    assert loading.code == 1
    assert row(loading, "endless")["status"] == "load-error"
    assert row(loading, "alpha")["loaded"]


def test_a_module_in_the_working_directory_is_not_imported(home, tmp_path):
    """The child that loads takes no file of the project for one of its own modules."""
    home.add("alpha")
    for name in ("hermes_ext", "attr", "json"):
        (tmp_path / "work" / f"{name}.py").write_text("raise SystemExit('planted')\n")

    assert home.run("list", "--load").code == 0


def test_a_disabled_extension_is_not_loaded(home):
    """Once disabled, a new process runs nothing of it; named on and off, it is off."""
    path = home.add("quiet", SENTINEL + GOOD)
    home.write_config("extensions:\n  on: [quiet]\n")

    home.run("disable", "quiet")
    loading = home.process("list", "--load", "--json")

    assert row(loading, "quiet")["status"] == "disabled"
    assert not row(loading, "quiet")["loaded"]
    assert not (path / "__init__.ran").exists()
    assert section(home)["disabled"] == ["quiet"]


def test_a_disabled_and_deleted_extension_is_only_a_line(home):
    """A name left in the configuration is one `missing` line; `enable` takes it out again."""
    home.write_config("extensions:\n  disabled: [gone]\n")

    assert row(home.run("list", "--json"), "gone")["status"] == "missing"
    assert home.run("enable", "gone").code == 0
    assert home.config.read_text() == ""
    assert home.run("list", "--json").json["extensions"] == [
        each for each in home.run("list", "--json").json["extensions"] if each["name"] != "gone"
    ]


# -- enable, disable ------------------------------------------------------------------------------


def test_a_global_one_is_turned_off_and_on_by_the_disabled_list(home):
    """`disable` puts a global extension into `disabled`, `enable` takes it out; nothing
    is left of it in the file.
    """
    home.add("alpha")
    home.write_config("# mine\nextensions:\n  log: steps  # loud\n")
    home.run("install")
    before = home.config.read_text()

    off = home.run("disable", "alpha")
    assert section(home) == {"log": "steps", "disabled": ["alpha"]}
    on = home.run("enable", "alpha")

    assert off.code == on.code == 0
    assert home.config.read_text() == before
    assert str(home.config) in off.out
    assert "extensions.disabled" in off.out
    assert "on the next turn" in off.out


def test_an_installed_one_is_turned_on_and_off_by_the_on_list(home, installed):
    """`enable` puts an entry point's one into `on` and out of `disabled`; `disable` undoes it."""
    home.write_config("extensions:\n  disabled: [Audit_Trail]\n")

    home.run("enable", "audit-trail")
    assert section(home) == {"on": ["audit-trail"]}
    loading = home.process("list", "--load", "--json")
    assert row(loading, "audit-trail")["loaded"]
    assert row(loading, "audit-trail")["source"] == "entry-point"

    home.run("disable", "audit-trail")
    assert home.config.read_text() == ""
    assert row(home.process("list", "--json"), "audit-trail")["status"] == "disabled"


@pytest.mark.parametrize("spelling", ["ping-island", "ping_island", "Ping_Island", "PING.ISLAND"])
def test_either_spelling_is_one_extension(home, spelling):
    """Hyphen, underscore and case make no difference, and nothing is written twice."""
    home.add("ping_island", manifest="name: ping-island\n")

    first = home.run("disable", spelling, "--json")
    again = home.run("disable", "ping-island", "--json")

    assert first.json["changed"]
    assert not again.json["changed"]
    assert section(home)["disabled"] == ["ping_island"]
    assert row(home.run("list", "--json"), "ping_island")["status"] == "disabled"


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "/etc/passwd", "x:y"])
def test_a_name_that_is_a_path_is_refused(home, name):
    """Names that reach elsewhere are unknown, and nothing is written."""
    output = home.run("disable", name)

    assert output.code == 2
    assert not home.config.exists()


@pytest.mark.parametrize("command", ["enable", "disable", "info"])
def test_an_unknown_name_is_usage_with_a_suggestion(home, command):
    """An unknown name is exit code 2, names the near one, and writes nothing."""
    home.add("workflow-rules")

    output = home.run(command, "wrokflow-rules")

    assert output.code == 2
    assert 'Did you mean "workflow-rules"?' in output.err
    assert not home.config.exists()


def test_one_hook_is_turned_off_and_on(home):
    """`--hook` writes `name:hook`, and takes it out again; the rest of the extension stays on."""
    home.add("alpha")

    off = home.run("disable", "alpha", "--hook", "intercept_tool_call", "--json")
    assert off.json["changes"][0]["added"] == ["alpha:intercept_tool_call"]
    for argv in (["list"], ["info", "alpha"], ["list", "--load"], ["list"], ["info", "alpha"]):
        assert "off: intercept_tool_call" in home.run(*argv).out
    listed = row(home.run("list", "--json"), "alpha")
    assert (listed["hooks"], listed["hooks_off"]) == ([], ["intercept_tool_call"])
    vain = home.run("disable", "alpha", "--hook", "before_llm_call")
    assert "no handler for before_llm_call; it has intercept_tool_call" in vain.out
    assert "which it does not register" in home.run("list").out
    home.run("enable", "alpha", "--hook", "before_llm_call")

    on = home.run("enable", "alpha", "--hook", "intercept-tool-call", "--json")
    assert on.json["changed"]
    assert home.config.read_text() == ""
    listed = row(home.run("list", "--json"), "alpha")
    assert [each["hook"] for each in listed["hooks"]] == ["intercept_tool_call"]
    assert (listed["hooks_off"], listed["warnings"]) == ([], [])


def test_enabling_all_says_which_hook_is_still_off(home):
    """`enable NAME` leaves single hooks off that were turned off singly, and says so."""
    home.add("alpha")
    home.write_config('extensions:\n  disabled: [alpha, "alpha:before_llm_call"]\n')

    output = home.run("enable", "alpha")

    assert section(home)["disabled"] == ["alpha:before_llm_call"]
    assert "still off: before_llm_call" in output.out


def test_disabling_a_required_one_says_what_follows(home):
    """Who turns off what `required` names is told that tool calls will be refused."""
    home.add("alpha")
    home.write_config("extensions:\n  required: [alpha]\n")

    assert "every tool call is refused" in home.run("disable", "alpha").out


def test_nothing_to_change_is_said(home):
    """Doing it again changes no byte, says so, and is exit code 0."""
    home.add("alpha")
    home.run("disable", "alpha")
    before = home.config.read_bytes(), home.config.stat().st_mtime_ns

    output = home.run("disable", "alpha")

    assert output.code == 0
    assert "nothing was changed" in output.out
    assert (home.config.read_bytes(), home.config.stat().st_mtime_ns) == before


@pytest.mark.hermes
def test_doctor_makes_no_home(home, tmp_path):
    """One that is misspelt is not there afterwards either, though Hermes was imported."""
    other = tmp_path / "other"

    assert home.process("doctor", "--home", str(other)).code == 1
    assert not other.exists()


def test_another_home_is_changed_where_one_is_named(home, tmp_path):
    """`--home` names the home that is read and changed; the default one stays as it is."""
    other = tmp_path / "other"
    (other / "extensions" / "beta").mkdir(parents=True)
    (other / "extensions" / "beta" / "__init__.py").write_text(GOOD)

    output = home.run("disable", "beta", "--home", str(other))
    assert output.code == 0
    installing = home.run("install", "--home", str(other)).out
    assert all(f"hermes-ext {word} --home {other}" in installing for word in ("list", "doctor"))
    assert f" --home {other}" in home.run("list", "--home", str(other)).out

    assert "beta" in (other / "config.yaml").read_text()
    assert not home.config.exists()


# -- info -----------------------------------------------------------------------------------------

MANIFEST = """
version: "2.0"
description: Keeps to the plan
requires_hermes_ext: ">=0.1"
requires: [attrs]
config:
  type: object
  properties:
    plan_path: {type: string, default: plan.md}
    strict: {type: boolean, default: false}
    api_key: {type: string}
"""


def test_info_shows_settings_and_where_each_comes_from(home):
    """Each setting has its effective value and its origin; secrets are not shown."""
    home.add("planner", manifest=MANIFEST)
    home.write_config("extensions:\n  planner:\n    strict: true\n    api_key: tell-nobody\n")

    output = home.run("info", "planner", "--json")

    assert {each["key"]: (each["value"], each["from"]) for each in output.json["settings"]} == {
        "strict": (True, "config.yaml:3"),
        "api_key": ("[redacted]", "config.yaml:4"),
        "plan_path": ("plan.md", "default"),
    }
    assert output.json["needs"] == {
        "hermes_ext": ">=0.1",
        "hermes_agent": None,
        "packages": ["attrs"],
    }
    shown = home.run("info", "planner").out
    assert "Keeps to the plan" in shown
    assert "tell-nobody" not in output.out + shown


SECRETS = ("smtp_pwd", "db_pass", "authorization", "session_cookie", "connection_string")


def test_no_command_shows_a_secret_setting(home):
    """Whatever a secret is called: in `info`, in a chat, and where a setting is wrong."""
    written = {name: f"Xk39fj{place}Q02mLpz8Vt" for place, name in enumerate(SECRETS)}
    manifest = {"config": {"properties": {name: {"type": "string"} for name in SECRETS}}}
    home.add("planner", manifest=json.dumps(manifest))
    home.write_config(json.dumps({"extensions": {"planner": written}}))

    rows = home.run("info", "planner", "--json").json["settings"]
    shown = home.run("info", "planner").out + slash("info planner", home=home.path)
    assert {each["key"]: each["value"] for each in rows} == dict.fromkeys(SECRETS, "[redacted]")
    manifest = {"config": {"properties": {name: {"maxLength": 3} for name in SECRETS}}}
    (home.path / "extensions/planner/extension.yaml").write_text(json.dumps(manifest))
    for command in (["list"], ["list", "--json"], ["info", "planner"], ["doctor"]):
        told = home.run(*command)
        shown += told.out + told.err
    assert "smtp_pwd" in shown
    assert not any(value in shown for value in written.values())


def test_no_command_shows_what_an_import_failed_over(home):
    """The reason of a record is an exception's own text."""
    home.add("broken", "raise RuntimeError('cannot log in with DB_PASSWORD=Xk39fjQ02mLpz8Vt')")
    told = home.run("list", "--load").out + home.run("doctor").out + home.run("list", "--json").out
    assert "cannot log in with DB_PASSWORD=[redacted]" in " ".join(told.split())
    assert "Xk39fj" not in told


def test_info_shows_what_it_registers_after_a_load(home):
    """Handlers are shown as the last load recorded them, with their place."""
    path = home.add("alpha")
    home.process("list", "--load")

    shown = home.run("info", "alpha").out

    assert "intercept_tool_call: check (priority 40, on failure block)" in shown
    assert f"{path}/__init__.py:" in shown


# -- what does not fit a terminal -----------------------------------------------------------------

ODD_DESCRIPTION = (
    'description: "[red]x[/red] [link=http://x]y[/link] \\e[31m\\e]0;t\\a caf\\u00e9 😀"\n'
)


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no UTF-8 need such a system")
@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "utf-8", "NO_COLOR": "1"},
    ],
    ids=["C", "C, no UTF-8 mode", "ascii", "utf-8"],
)
def test_any_path_and_text_can_be_printed(home, env):
    """Odd paths and texts are printed in any locale, escaped, never as markup."""
    home.add("spaced é 😀", manifest=ODD_DESCRIPTION)
    odd = os.fsencode(home.path / "extensions") + b"/undecodable-\xff"
    os.mkdir(odd)
    with open(odd + b"/__init__.py", "w") as file:
        file.write(GOOD)
    home.write_config("# é 😀\nextensions:\n  on: ['né😀']\n")

    for command in (["list"], ["list", "--load"], ["list", "--json"], ["doctor"]):
        output = home.process(*command, **env)
        assert output.code in {0, 1}, output
        assert "Traceback" not in output.err
        assert "undecodable-\\xff" in output.out.replace("\\\\", "\\")
        assert "\x1b" not in output.out
    shown = home.process("info", "spaced é 😀", **env)
    assert shown.code == 0, shown
    assert "[red]x[/red]" in shown.out
    assert "\x1b" not in shown.out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-8"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_config_in_any_common_form_is_read_and_changed(home, encoding, newline):
    """Byte-order mark and CRLF are read in any locale, and stay when a list is changed."""
    home.add("alpha")
    text = f"# é 😀{newline}extensions:{newline}  disabled: []{newline}"
    home.config.write_bytes(text.encode(encoding))

    output = home.process("disable", "alpha", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")

    assert output.code == 0, output
    assert home.config.read_bytes() == text.replace("[]", "[alpha]").encode(encoding)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_lines_keep_to_the_width(home, width, monkeypatch):
    """At any width lines are wrapped, and no text is lost."""
    monkeypatch.setenv("COLUMNS", str(width))
    home.add("alpha")
    home.write_config("extensions:\n  on: [nowhere]\n")

    output = home.run("list")

    assert max(map(len, output.out.splitlines())) <= width
    assert "no extension of that name is installed" in " ".join(output.out.split())


def test_a_pipe_gets_whole_lines(home, monkeypatch):
    """Where the output is no terminal, nothing is wrapped, so that a path can be searched for."""
    monkeypatch.delenv("COLUMNS")
    home.add("alpha")
    home.write_config("extensions:\n  on: [nowhere]\n")

    told = [line for line in home.run("list").out.splitlines() if str(home.config) in line]

    assert any("no extension of that name is installed" in line for line in told)


# -- order ----------------------------------------------------------------------------------------


def test_order_shows_the_chain(home):
    """`--order` has a hook's handlers as they run: transformers, the built-in guard, guards."""
    home.add("late", GOOD.replace("40", "200"))
    home.add("early", GOOD.replace("40", "5"))
    home.add("guarding", GOOD.replace("priority=40", "priority=1, guard=True"))

    output = home.process("list", "--order", "intercept_tool_call", "--json")
    shown = home.process("list", "--order", "intercept_tool_call")

    handlers = output.json["order"]["handlers"]
    assert [each["extension"] for each in handlers] == ["early", "late", "hermes-ext", "guarding"]
    assert shown.code == 0
    positions = [shown.out.index(name) for name in ("early", "late", "built in", "guarding")]
    assert positions == sorted(positions)


def test_doctor_names_other_plugins_that_gate_tools(home):
    """Another plugin that gates or traces tools is a note, on the page and in the JSON."""
    home.write_config("plugins: {enabled: [hermes-ext, latitude]}\n")

    page = home.run("doctor")
    findings = home.run("doctor", "--json").json["findings"]

    assert page.code == 0
    assert "the plugin latitude traces" in page.out
    assert [each["severity"] for each in findings if each["code"] == "neighbor"] == ["note"]
