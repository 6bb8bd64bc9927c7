"""What is protected, what is not, and every way to write that `effects` knows of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.bundled import ROOT, Bundled, readme_of, schema_of

PATHS = ["secrets/", "*.lock", "/plans/final.md", "!free.lock", "//opt/app/", "~/.ssh/"]
PATHS += ["linked/", "/etc/**", "../beside/**", "./dot/x", "#note", "in [brackets]/a"]


# Calls are only judged, so one project is enough for all.
@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundled]:
    tmp_path = tmp_path_factory.mktemp("base")
    patched = pytest.MonkeyPatch()
    patched.setenv("HOME", str(tmp_path / "user"))
    found = Bundled(tmp_path, "protected-paths", paths=PATHS)
    for name in ("secrets/key", "uv.lock", "src/a.py", "plans/final.md", "free.lock"):
        found.write(name)
    found.write("real/f")
    for folder in ("user", "keys"):
        (tmp_path / folder).mkdir()
    (found.project / "alias").symlink_to("secrets")
    (found.project / "linked").symlink_to("real")
    (tmp_path / "user/.ssh").symlink_to(tmp_path / "keys")
    (tmp_path / "keys/id").write_text("x")
    (found.project / "same").hardlink_to(found.project / "uv.lock")
    yield found
    patched.undo()


REFUSED = """
echo x > secrets/key
echo x > secrets/new
echo x > sub/secrets/new
rm secrets/key
rm -r secrets
rm -rf .
mv secrets elsewhere
mv src/a.py secrets/
cp src/a.py secrets/key
cp -r src secrets/src
ln -sf src/a.py secrets/key
sed -i s/a/b/ uv.lock
tee -a uv.lock < src/a.py
cd plans && echo x > final.md
cd src && echo x > ../plans/final.md
echo x > alias/key
bash -c 'rm uv.lock'
env A=1 rm uv.lock
find . -name '*.lock' -delete
find . -delete
echo uv.lock | xargs rm
python3 -c "open('uv.lock', 'w').write('')"
x=uv.lock; rm $x
$(rm uv.lock)
rm ~/.ssh/id
touch /opt/app/x
git checkout -- uv.lock
python3 tool.py secrets/key
make -C secrets
cd secrets; make
echo x > linked/f
echo x > real/f
echo x > ../keys/id
echo x > /etc/hosts
echo x > ../beside/new
echo x > dot/x
echo x > '#note'
echo x > SECRETS/key
echo x > Uv.Lock
echo x > same
ln uv.lock other
ln -s uv.lock other; echo x > other
rm */key
for f in *.lock; do rm $f; done
tee {src/b,uv.lock} < src/a.py
exec 3>uv.lock; echo x >&3
perl -e 'unlink glob "secrets/*"'
git -C secrets clean -fdx
tar xf a.tar
rm -rf ~/.ssh/
""".strip().splitlines()

PASSED = """
cat secrets/key uv.lock
grep -r x secrets
ls -la secrets
cp uv.lock /tmp/copy
echo x > src/a.py
echo x > free.lock
echo x > notes/plans/final.md
rm -r src
make
pytest -q tests
git diff
git add uv.lock
git log -- uv.lock
rm alias
cp uv.lock free.lock
echo x > brackets/a
""".strip().splitlines()


@pytest.mark.parametrize("command", REFUSED)
def test_what_would_change_it_is_refused(on: Bundled, command: str) -> None:
    outcome = on.shell(command)
    assert outcome.blocked_by == "protected-paths", command
    assert "protected (extensions.protected-paths.paths: " in str(outcome.message)


@pytest.mark.parametrize("command", PASSED)
def test_the_rest_is_free(on: Bundled, command: str) -> None:
    assert not on.shell(command).blocked, command


# Programs that are known to write, and to what is not: a protected file that is there may be meant.
OPEN = """
ls *.lock | xargs rm
find . -name '*.lock' | xargs rm
xargs -L2 rm < list
cat list | xargs sed -i s/a/b/
cat list | xargs -I{} cp src/a.py {}
rm $(ls)
rm "$f"
rm -r "$d/secrets"
mv "$f" old
cp src/a.py "$f"
echo x > "$f"
tee "$d/uv.lock" < src/a.py
cd "$d" && rm -r secrets
rm "./$f"
rm secrets*/"$f"
patch -p0 < x
while read f; do rm "$f"; done < list
awk '{print > $1}' list
""".strip().splitlines()

# What developers do all day, where files are protected that are there.
USUAL = """
npm install
npm ci
npm run build
yarn add left-pad
pip install -e .
pip install -r requirements.txt
uv sync
poetry lock
go build ./...
go mod tidy
cargo build
cargo test --release
make
make -j4 all
make install DESTDIR="$out"
mkdir -p build && cd build && cmake ..
mkdir -p "$out"
mkdir -p "src/$x"
black .
black $(git diff --name-only)
ruff check --fix .
ruff format src
prettier --write src
git add -A
git add $(git ls-files -m)
git commit -m x
git commit -am "fix: y"
git push origin main
git fetch --all
git tag v1
git branch topic
git checkout -b topic
cp src/a.py src/b.py
mv src/a.py src/c.py
touch x
rm -rf build
rm -f src/*.pyc
sed -i s/a/b/ src/a.py
find src -name '*.pyc' -delete
tar czf a.tgz src
tar czf "$name.tgz" src
echo x > "$out/result.json"
echo x | tee -a log.txt
cd "$d" && echo x > notes.txt
f=$(mktemp); sed s/a/b/ src/a.py > "$f" && mv "$f" src/a.py
for f in src/*.py; do sed -i s/a/b/ "$f"; done
for f in a b; do touch "src/$f.txt"; done
d=build; rm -rf "$d/x"
rm -rf "src/$name"
python3 setup.py build
pytest -q
docker build -t x .
curl -o page.html https://example.org
ln -s src/a.py link
chmod +x src/a.py
""".strip().splitlines()

V4A = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-x\n+y\n*** {}\n*** End Patch"


@pytest.mark.parametrize("command", OPEN)
def test_known_programs_that_write_to_what_is_not_known(on: Bundled, command: str) -> None:
    """It is refused by default, and says which file may be meant, and by which pattern."""
    outcome = on.shell(command)
    assert outcome.blocked_by == "protected-paths", command
    assert "protected (extensions.protected-paths.paths: " in str(outcome.message)


@pytest.mark.parametrize(
    ("targets", "action", "of_asking"),
    [("block", "block", "ask"), ("ask", "ask", "ask"), ("pass", "pass", "pass")],
)
def test_what_is_done_about_them(tmp_path: Path, targets: str, action: str, of_asking: str) -> None:
    """The setting says it; a rule that asks about what is certain asks here too."""
    on = Bundled(tmp_path, "protected-paths", paths=["*.lock"], targets=targets)
    on.write("uv.lock")
    assert on.shell('rm "$f"').action == action
    rules = [{"paths": ["*.lock"], "action": "ask"}]
    on = Bundled(tmp_path / "other", "protected-paths", paths=[], rules=rules, targets=targets)
    on.write("uv.lock")
    assert on.shell('rm "$f"').action == of_asking


def test_without_settings_the_usual_places_of_keys_are_protected(tmp_path: Path) -> None:
    """Turned on and nothing said, it is not without effect."""
    on = Bundled(tmp_path, "protected-paths")
    assert on.shell("echo KEY=1 > .env").blocked
    assert on.shell("cp key ~/.ssh/id_rsa").blocked
    assert not on.shell("echo KEY=1 > notes.txt").blocked


def test_where_nothing_protected_is_there_they_are_free(tmp_path: Path) -> None:
    """A pattern alone is not in danger; what is there outside of the project is."""
    on = Bundled(tmp_path, "protected-paths", paths=["*.lock", "secrets/", "../beside/"])
    assert not on.shell('rm "$f"').blocked
    (tmp_path / "beside").mkdir()
    on = Bundled(tmp_path / "again", "protected-paths", paths=["*.lock", str(tmp_path / "beside")])
    assert on.shell('rm "$f"').blocked
    assert not on.shell('rm "src/$f"').blocked


@pytest.mark.parametrize(
    ("kinds", "refused", "free"),
    [(["delete"], 'rm "$f"', 'tee "$f"'), (["write"], 'tee "$f"', 'rm "$f"')],
)
def test_they_count_for_rules_about_what_they_do(
    tmp_path: Path, kinds: list[str], refused: str, free: str
) -> None:
    rules = [{"paths": ["*.lock"], "on": kinds}]
    on = Bundled(tmp_path, "protected-paths", paths=[], rules=rules)
    on.write("uv.lock")
    assert on.shell(refused).blocked
    assert not on.shell(free).blocked


@pytest.mark.parametrize("command", USUAL)
def test_usual_commands_stay_free(usual: Bundled, command: str) -> None:
    assert not usual.shell(command).blocked, command


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bundled]:
    """A project with protected files, which is not in the directory for temporary files."""
    base = tmp_path_factory.mktemp("usual")
    (base / "tmp").mkdir()
    patched = pytest.MonkeyPatch()
    patched.setenv("TMPDIR", str(base / "tmp"))
    found = Bundled(base, "protected-paths", paths=["*.lock", "secrets/"])
    for name in ("secrets/key", "uv.lock", "src/a.py", "build/x"):
        found.write(name)
    yield found
    patched.undo()


def test_commands_that_only_read_are_not_refused(usual: Bundled) -> None:
    """None of the list that `effects` is tested with."""
    listed = (ROOT / "tests/effects/read_only_commands.txt").read_text().splitlines()
    commands = [line for line in listed if line and line[:2] != "# "]
    refused = [each for each in commands if usual.shell(each).blocked]
    assert len(commands) >= 300
    assert refused == []


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("write_file", {"path": "secrets/key", "content": ""}),
        ("write_file", {"path": "src/../secrets/key", "content": ""}),
        ("patch", {"mode": "replace", "path": "uv.lock", "old_string": "a", "new_string": "b"}),
        ("patch", {"mode": "patch", "patch": V4A.format("Delete File: uv.lock")}),
        ("patch", {"mode": "patch", "patch": V4A.format("Move File: src/a.py -> secrets/a")}),
        ("execute_code", {"code": "open('uv.lock', 'w').write('')"}),
        ("execute_code", {"code": "import shutil\nshutil.rmtree('secrets')"}),
        ("mcp_files_write_file", {"path": "secrets/key", "content": ""}),
    ],
)
def test_every_tool(on: Bundled, tool: str, args: dict[str, Any]) -> None:
    assert on.call(tool, args).blocked


@pytest.mark.parametrize(
    ("kinds", "refused", "free"),
    [
        (["create"], "touch kept/new", "rm kept/a; echo > kept/a"),
        (["write"], "echo > kept/a", "rm kept/a; touch kept/new"),
        (["delete"], "rm kept/a", "echo > kept/a; touch kept/new"),
    ],
)
def test_kinds_of_change(tmp_path: Path, kinds: list[str], refused: str, free: str) -> None:
    """A rule is about what it says: creating, changing or deleting."""
    on = Bundled(tmp_path, "protected-paths", rules=[{"paths": ["kept/"], "on": kinds}])
    on.write("kept/a")
    assert on.shell(refused).blocked
    for command in free.split("; "):
        assert not on.shell(command).blocked, command


def test_a_rule_can_ask(tmp_path: Path) -> None:
    """A person decides, about exactly this call; the rule's text is told."""
    rules = [{"paths": ["ci/"], "action": "ask", "message": "Ask the owner."}]
    on = Bundled(tmp_path, "protected-paths", rules=rules)
    outcome = on.judged("write_file", {"path": "ci/x.yml", "content": ""})
    assert outcome.action == "ask"
    assert outcome.asks[0].key is None
    assert "Ask the owner." in outcome.asks[0].reason
    assert on.call("write_file", {"path": "ci/x.yml", "content": ""}).blocked


def test_a_block_wins_over_an_ask(tmp_path: Path) -> None:
    """Also where one directory that changes holds files of both."""
    rules = [{"paths": ["ci/"], "action": "ask"}, {"paths": ["secrets/"]}]
    on = Bundled(tmp_path, "protected-paths", rules=rules)
    assert on.shell("touch ci/x secrets/y").blocked
    on.write("all/ci/x")
    on.write("all/secrets/y")
    assert on.shell("rm -r all").blocked
    assert on.shell("rm -r all/ci").action == "ask"


@pytest.mark.parametrize(
    ("unknown", "action"), [("pass", "pass"), ("ask", "ask"), ("block", "block")]
)
def test_what_nobody_knows(tmp_path: Path, unknown: str, action: str) -> None:
    on = Bundled(tmp_path, "protected-paths", paths=["secrets/"], unknown=unknown)
    assert on.shell("make").action == action
    assert on.shell("tar xf a.tar").action == action
    assert on.shell("ls").action == "pass"


def test_without_a_directory_nothing_may_write(tmp_path: Path) -> None:
    """Where the project is not known, what a pattern means is not known either."""
    on = Bundled(tmp_path, "protected-paths", paths=["secrets/"])
    from hermes_ext import ToolCall
    from hermes_ext.chain.fold import run
    from hermes_ext.hooks.payloads import Scope

    chain = on.runtime.manager.chain("intercept_tool_call", "write_file")
    outcome = run(chain, ToolCall("write_file", {"path": "a"}), Scope(session_id="s", state={}))
    assert outcome.blocked


def test_on_another_machine_a_directory_is_not_looked_into(tmp_path: Path) -> None:
    """What is in it is not known here, so it must not change as a whole."""
    from hermes_ext import ToolCall
    from hermes_ext.chain.fold import run
    from hermes_ext.effects import Machine
    from hermes_ext.hooks.payloads import Scope

    on = Bundled(tmp_path, "protected-paths", paths=["*.lock"])
    chain = on.runtime.manager.chain("intercept_tool_call", "terminal")
    scope = Scope(session_id="s", state={}, cwd=Path("/there"), project_root=Path("/there"))
    for command, blocked in (("rm -r x", True), ("rm a.lock", True), ("rm x", False)):
        machine = Machine(cwd=Path("/there"), local=False)
        call = ToolCall("terminal", {"command": command}, machine=machine)
        assert run(chain, call, scope).blocked is blocked, command


def test_a_place_below_what_is_unpacked(tmp_path: Path) -> None:
    """A pattern for a place counts though nothing is there yet."""
    on = Bundled(tmp_path, "protected-paths", paths=["locks/*.lock"])
    assert on.shell("tar xf a.tar").blocked
    assert not on.shell("tar xf a.tar -C /tmp/x").blocked


def test_settings_are_documented() -> None:
    """The page names every setting, and each has a default and a description."""
    for name, setting in schema_of("protected-paths")["properties"].items():
        assert f"`{name}`" in readme_of("protected-paths")
        assert "default" in setting
        assert setting["description"]
