# ruff: noqa: E501 - pieces of code, each on a line of its own
"""Code says what it changes as far as that can be told, and what is not sure may write."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of

PLACE = Path("/nowhere/project")


def effects(code: str, place: Path = PLACE) -> Effects:
    machine = Machine(cwd=place, homes=("/nowhere/home",), environ={})
    return effects_of(ToolCall("execute_code", {"code": textwrap.dedent(code)}), machine=machine)


def changes(code: str) -> set[tuple[str, str]]:
    return {
        (os.path.relpath(each.path, PLACE), each.kind.value + ("*" if each.tree else ""))
        for each in effects(code).changes
    }


SURELY_NOTHING = [
    "print(1)",
    "import json, sys; print(json.load(open('a.json'))['x'])",
    "from pathlib import Path; print(Path('a').read_text())",
    "from hermes_tools import read_file; print(read_file('a.py'))",
    "from hermes_tools import search_files, json_parse; print(search_files('x', path='src'))",
    "for i in range(3):\n    print(i, end=' ')\nelse:\n    print()",
    "print([x * 2 for x in range(3) if x], {k: v for k, v in {}.items()}, (x for x in ()))",
    "def f(a, *b, c=2, **d):\n    return a + c\nprint(f(1), (lambda x: x)(2))",
    "import os\nfor d, _, fs in os.walk('.'):\n    print([os.path.join(d, f) for f in fs])",
    "import re, sys\nfor line in sys.stdin:\n    print(re.match(r'a(.)', line)[1])",
    "import sys; print(sys.path, sys.version_info >= (3, 8)); sys.exit(0)",
    "import os; print(os.environ.get('X'), os.environ['HOME'], 'A' in os.environ)",
    "import json, os; print(json.__version__, os.__file__, dir(json))",
    "class A:\n    def __init__(self):\n        self.x = 1\n    def f(self):\n        pass\nA().f()",
    "class E(ValueError):\n    def __init__(self):\n        super().__init__('x')\nraise E",
    "from dataclasses import dataclass\n@dataclass\nclass P:\n    a: int = 1\nprint(P().a)",
    "from collections import Counter, namedtuple\nQ = namedtuple('Q', 'one two')\nprint(Q(1, 2).one)",
    "with open('a', encoding='utf-8') as f, open('b', 'rb') as g:\n    print(f.read(), g.readline())",
    "print('a b'.replace('a', 'b'), {}.copy(), [1].copy())",
    "import datetime as dt; print(dt.datetime.now().replace(hour=1).isoformat())",
    "import hashlib; print(hashlib.sha256(open('a', 'rb').read()).hexdigest())",
    "print(open(0).read())",
    "import csv; print(list(csv.reader(open('a'))), list(csv.DictReader(open('a'))))",
    "from pathlib import Path\nfor p in Path('.').rglob('*.py'):\n    print(p, p.stat().st_size)",
    "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    print(type(e).__name__, e)\nfinally:\n    pass",
    "import ast; print(ast.dump(ast.parse(open('a.py').read())))",
    "import inspect, json; print(inspect.getsource(json))",
    "print(f'{1 + 1=} {2:>{3}}', getattr('a', 'upper')(), isinstance(1, type))",
    "import importlib.util, importlib.metadata as m\nprint(importlib.util.find_spec('x'), m.version('y'))",
    "import subprocess; print(subprocess.run(['ls', '-l'], capture_output=True, text=True).stdout)",
    "match [1, 'a']:\n    case [int(), str() as s]:\n        print(s)\n    case _:\n        pass",
    "import functools\ndef d(f):\n    @functools.wraps(f)\n    def g(*a):\n        return f(*a)\n    return g",
    "import tarfile, zipfile; print(tarfile.open('a').getnames(), zipfile.ZipFile('b').namelist())",
    "async def f():\n    async for x in y():\n        yield x\ndef y():\n    global z\n    z = 1",
    "if __name__ == '__main__':\n    print(input('name? '))",
]  # fmt: skip


@pytest.mark.parametrize("code", SURELY_NOTHING, ids=range(len(SURELY_NOTHING)))
def test_code_that_looks_at_things_surely_changes_nothing(code: str) -> None:
    found = effects(code)
    assert not found.unknown
    assert not found.may_write


CHANGES: list[tuple[str, set[tuple[str, str]]]] = [
    ("open('a', 'w')", {("a", "create")}),
    ("open(file='a', mode='r+b')", {("a", "create")}),
    ("from pathlib import Path\nPath('a').open('x')", {("a", "create")}),
    ("with open('a', 'a') as f:\n    f.write('x')\n    print('y', file=f)", {("a", "create")}),
    ("for n in ['a', 'b']:\n    open(n + '.txt', 'w')", {("a.txt", "create"), ("b.txt", "create")}),
    ("[open(n, 'w') for n in ('a', 'b')]", {("a", "create"), ("b", "create")}),
    ("d = 'src'\nn = f'{d}/x'\nopen(n + '.py', 'w')", {("src/x.py", "create")}),
    ("m = 'w' if input() else 'r'\nopen('a', m)", {("a", "create")}),
    ("from pathlib import Path as P\n(P.home() / 'a' / 'b').write_text('')",
     {("../home/a/b", "create")}),
    ("import os\nopen(os.path.expanduser('~/a'), 'w')", {("../home/a", "create")}),
    ("import os\nopen(os.environ['HOME'] + '/a', 'w')", {("../home/a", "create")}),
    ("from pathlib import Path\nPath('a/b').parent.joinpath('c').write_bytes(b'')",
     {("a/c", "create")}),
    ("open('~/a', 'w')", {("~/a", "create")}),
    ("import os\nos.remove('a')", {("a", "delete")}),
    ("from os import unlink as u\nu('a')", {("a", "delete")}),
    ("from pathlib import Path\nPath('a').unlink(missing_ok=True)", {("a", "delete")}),
    ("import os\nos.rename('a', 'b')", {("a", "delete"), ("b", "create")}),
    ("from pathlib import Path\nPath('a').replace('b')", {("a", "delete"), ("b", "create")}),
    ("import os\nos.makedirs('a/b', exist_ok=True)", {("a", "create"), ("a/b", "create")}),
    ("import shutil\nshutil.rmtree('a')", {("a", "delete*")}),
    ("import shutil\nshutil.copy('a', 'b')", {("b", "create")}),
    ("import shutil\nshutil.copytree('a', 'b')", {("b", "write*")}),
    ("import shutil\nshutil.move('a', 'b')", {("a", "delete"), ("b", "create")}),
    ("import gzip\ngzip.open('a.gz', 'wt')", {("a.gz", "create")}),
    ("import tarfile\ntarfile.open('a.tar', 'w:gz')", {("a.tar", "create")}),
    ("import subprocess as s\ns.run(['rm', 'a'])\ns.run('rm b', shell=True)",
     {("a", "delete"), ("b", "delete")}),
    ("import subprocess\nsubprocess.check_call(['rm', 'a'], cwd='src')", {("src/a", "delete")}),
    ("import os\nos.system('echo > a')\nos.popen('rm b')", {("a", "create"), ("b", "delete")}),
    ("from hermes_tools import terminal, write_file, patch\nwrite_file('a', 'b')\nterminal('rm c')\n"
     "patch(mode='patch', patch='*** Delete File: d')",
     {("a", "create"), ("c", "delete"), ("d", "delete")}),
    ("import os\nos.chdir('/tmp/x')\nopen('a', 'w')",
     {("a", "create"), ("../../tmp/x/a", "create")}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "expected"), CHANGES, ids=range(len(CHANGES)))
def test_what_code_changes_by_name_is_listed_and_nothing_else_happens(
    code: str, expected: set[tuple[str, str]]
) -> None:
    assert changes(code) == expected
    assert effects(code).exact


ANYTHING = [
    # what it changes is not known
    "open(input(), 'w')",
    "open(*['a', 'w'])",
    "open('a', **{'mode': 'w'})",
    "open('a', opener=print)",
    "open(b'+AGE-'.decode('utf-7'), 'w')",
    "import os\nos.remove('a', dir_fd=3)",
    "import os\nos.chdir(input())\nopen('a', 'w')",
    "p = 'a'\np += input()\nopen(p, 'w')",
    "names = ['a']\nnames.append(input())\nimport subprocess\nsubprocess.run(names)",
    "for p in input():\n    open(p, 'w')",
    "def f(p):\n    open(p, 'w')\nf('a')",
    "from pathlib import Path\nfor p in Path('.').iterdir():\n    p.unlink()",
    "from hermes_tools import terminal\nterminal(input())",
    "import subprocess\nsubprocess.run(['ls'], env={'PATH': '.'})",
    "import subprocess\nsubprocess.run(['sh'], input=input())",
    "import subprocess\nsubprocess.Popen(['sh']).communicate('rm a')",
    # nobody knows what that does
    "import foo",
    "from . import foo",
    "from os import *",
    "import tempfile\ntempfile.mkstemp()",
    "import ctypes, socket, sqlite3, logging",
    "import os\nos.open('a', os.O_CREAT)",
    "import io\nio.FileIO('a', 'w')",
    "import site\nsite.main()",
    "x.y.z()",
    # code that is made while it runs
    "exec('1')",
    "eval('1')",
    "compile('1', '', 'exec')",
    "__import__('os')",
    "import importlib\nimportlib.import_module('x')",
    "import typing\ntyping.get_type_hints(f)",
    "import functools\nfunctools.singledispatch(f)",
    # ways to what is not named
    "f = open\nf('a', 'w')",
    "list(map(open, ['a'], ['w']))",
    "import os\nf = os.remove\nf('a')",
    "import os\n[each for each in [os]][0].remove('a')",
    "import sys\nsys.modules['os'].remove('a')",
    "import sys\nsys.path.insert(0, '.')\nimport json",
    "import os\nos.environ['PATH'] = '.'\nos.system('ls')",
    "import os\nos.environ.update(PATH='.')",
    "from os import environ\nenviron.setdefault('PATH', '.')",
    "globals()['__builtins__']",
    "vars()",
    "__builtins__.open",
    "().__class__.__base__.__subclasses__()",
    "print.__self__",
    "(lambda: 0).__globals__",
    "getattr(1, 'a' + 'b')",
    "getattr((x for x in ()), 'gi_frame')",
    "(x for x in ()).gi_frame.f_globals",
    "class A:\n    gi_frame = 1\n(x for x in ()).gi_frame",
    "from pathlib import Path\nclass A:\n    parser = os = system = 1\nPath('a').parser.os.system('x')",
    "from pathlib import Path\nsorted([Path('a')], key=Path.unlink)",
    "from pathlib import Path\nf = Path('a').unlink\nf()",
    "import operator\noperator.methodcaller('unlink')",
    "import string\nstring.Formatter().get_field('0.unlink', [1], {})",
    "import functools\nfunctools.partial(open, 'a', 'w')()",
    "import functools\nfunctools.wraps(1, ('unlink',))(2)",
    "match 1:\n    case int(real=x):\n        pass",
    "class A:\n    __match_args__ = ('unlink',)",
    # classes that open files when they are called
    "type(open('a', 'rb', 0))('b', 'w')",
    "for c in map(type, [open('a', 'rb', 0)]):\n    c('b', 'w')",
    "open('a', 'rb', 0).__init__('b', 'w')",
    "import subprocess\nsubprocess.Popen(['ls']).__init__(['rm', 'a'])",
    "import zipfile\nclass Z(zipfile.ZipFile):\n    pass\nZ('a', 'w')",
    "type('A', (), {'x': 1})",
    # names that stand for something else
    "def open(x):\n    pass\nopen('a')",
    "if input():\n    import os\nelse:\n    import json as os\nos.remove('a')",
    "os = 1\nimport os\nos.remove('a')",
    "import json as __builtins__",
    "__builtins__ = {}",
    "import json\njson.loads = print",
    "from pathlib import Path\nclass P:\n    def f(self):\n        self.joinpath = print\nP.f(Path)\n"
    "(Path('a').joinpath('b')).write_text('')",
    "class M(type):\n    pass\nclass A(metaclass=M):\n    pass",
    "x = 1\nx.foo.bar = 2",
    # nothing that Python understands
    "print 1",
    "\0",
    "(" * 500,
    "-" * 20_000 + "1",
    "x" + ".y" * 20_000,
    "x = '" + "a" * 1_000_001 + "'",
    "\n".join(f"x{i} = {i}" for i in range(60_000)),
]  # fmt: skip


@pytest.mark.parametrize("code", ANYTHING, ids=range(len(ANYTHING)))
def test_code_may_write_unless_it_is_sure_that_it_does_not(code: str) -> None:
    found = effects(code)
    assert found.may_write
    assert not found.exact
    assert not any("cannot be understood" in why for why in found.unknown), found.unknown


def test_what_code_that_is_not_understood_speaks_of_is_mentioned() -> None:
    code = """
        import foo
        base = "/etc/" + "app"
        foo.spoil(f"{base}/config.yaml", ["plans/x.md"], "rm -rf 'docs/index.md'", ".env")
        foo.spoil(f"/var/{foo.x}/secret.txt")
    """
    mentions = {str(path) for path in effects(code).mentions}
    assert {"/etc/app/config.yaml", f"{PLACE}/plans/x.md", f"{PLACE}/docs/index.md"} <= mentions
    assert f"{PLACE}/.env" in mentions
    assert "/var" in mentions


def test_known_changes_are_listed_beside_what_is_not_known() -> None:
    assert changes("import foo, os\nos.remove('a')\nfoo.x()") == {("a", "delete")}


def test_what_is_read_and_searched_is_told() -> None:
    code = """
        import glob, os
        from pathlib import Path
        open("/x/a"); Path("/x/b").read_text(); os.listdir("/x/c")
        os.walk("/y/a"); Path("/y/b").rglob("*"); glob.glob("/y/c/**/*.py")
    """
    found = effects(code)
    assert {Path("/x/a"), Path("/x/b"), Path("/x/c")} <= found.reads
    assert found.searches == {Path("/y/a"), Path("/y/b"), Path("/y/c")}


def test_a_module_of_the_working_directory_is_not_the_library_s(tmp_path: Path) -> None:
    call = ToolCall("terminal", {"command": "python3 -c 'import json; print(json.dumps(1))'"})
    machine = Machine(cwd=tmp_path, homes=(), environ={})
    assert effects_of(call, machine=machine).exact
    (tmp_path / "enum.py").write_text("open('spoilt', 'w')")
    assert not effects_of(ToolCall(call.tool_name, call.tool_args), machine=machine).exact


# -- code that is really run ----------------------------------------------------------------------

_SEED = 20260728
_PROGRAMS = 150

_HEAD = "import os, shutil, subprocess\nfrom pathlib import Path\n"
_PATHS = ["a.txt", "b.txt", "d/x.txt", "d/new.txt", "link", "dlink/y.txt", "new.txt", "d", "e/f"]
_SPELT = [
    "{0!r}",
    "os.path.join('.', {0!r})",
    "'./' + {0!r}",
    "f'./{{{0!r}}}'",
    "str(Path('.') / {0!r})",
    "Path({0!r})",
    "({0!r} if len('x') else 'b.txt')",
    "os.path.join(os.getcwd(), {0!r})",
    "'{{}}'.format({0!r})",
    "{0!r}[:]",
]
_STATEMENTS = [
    "open({p}, 'w').write('1')",
    "with open({p}, 'a') as f:\n    f.write('2')",
    "for each in [{p}, {q}]:\n    open(each, 'w').write('3')",
    "where = {p}\nopen(where, 'r+').write('4')",
    "Path({p}).write_text('5')",
    "Path({p}).touch()",
    "Path({p}).unlink()",
    "Path({p}).rename({q})",
    "Path({p}).mkdir(parents=True, exist_ok=True)",
    "Path({p}).symlink_to({q})",
    "Path({p}).replace({q})",
    "os.remove({p})",
    "os.replace({p}, {q})",
    "os.makedirs({p})",
    "os.rmdir({p})",
    "os.chmod({p}, 0o600)",
    "os.symlink({p}, {q})",
    "os.link({p}, {q})",
    "shutil.copy({p}, {q})",
    "shutil.copyfile({p}, {q})",
    "shutil.copytree({p}, {q})",
    "shutil.move({p}, {q})",
    "shutil.rmtree({p})",
    "subprocess.run(['cp', str({p}), str({q})])",
    "subprocess.run(['rm', '-rf', {p}])",
    "os.system('mkdir -p g; echo 1 > g/h')",
    "print(open({p}).read())",
    "print(os.listdir({p}), [each.name for each in Path({q}).iterdir()])",
    "print(Path({p}).exists(), Path({p}).read_text().replace('x', 'y'))",
    "def own(path, to={q}):\n    return open(to).read()\nprint(own({p}))",
    "exec(\"open('b.txt', 'w')\")",
    "print([each for each in Path('.').rglob('*.txt')], sorted(os.walk({p})))",
]
_DRIVER = """
import json, os, pathlib, shutil, subprocess, sys
for place, code in json.load(sys.stdin):
    child = os.fork()
    if not child:
        os.chdir(place)
        quiet = os.open(os.devnull, os.O_RDWR)
        for each in (0, 1, 2):
            os.dup2(quiet, each)
        for part in code:
            try:
                exec(part, {"__name__": "__main__"})
            except BaseException:
                pass
        os._exit(0)
    os.waitpid(child, 0)
"""


def _programs() -> list[list[str]]:
    """Programs, in parts: one part may fail, and the next runs all the same."""
    chosen = random.Random(_SEED)

    def spelt() -> str:
        return chosen.choice(_SPELT).format(chosen.choice(_PATHS))

    return [
        [
            chosen.choice(_STATEMENTS).format(p=spelt(), q=spelt())
            for _ in range(chosen.choice((1, 1, 2, 3)))
        ]
        for _ in range(_PROGRAMS)
    ]


def _scratch(root: Path) -> None:
    for name in ("a.txt", "b.txt", "d/x.txt", "d/y.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{name}\nsome lines\n")
    (root / "link").symlink_to("a.txt")
    (root / "dlink").symlink_to("d")


def _state(root: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = Path(folder, name)
            what: object = None
            if path.is_symlink():
                what = os.readlink(path)
            elif path.is_file():
                what = (path.read_bytes(), path.stat().st_mode)
            found[os.fspath(path)] = what
    return found


def test_what_code_really_changes_was_announced(tmp_path: Path) -> None:
    """A seeded set of programs is run; every file that has changed was announced by name, or the
    program was one of those that may do anything.
    """
    programs = _programs()
    places = [(tmp_path / str(number)).resolve() for number in range(len(programs))]
    announced, before = [], []
    for place, parts in zip(places, programs, strict=True):
        _scratch(place)
        before.append(_state(place))
        announced.append(effects(_HEAD + "\n".join(parts), place))
    runs = [
        (str(place), [_HEAD + part for part in parts])
        for place, parts in zip(places, programs, strict=True)
    ]
    subprocess.run([sys.executable, "-c", _DRIVER], input=json.dumps(runs), text=True, check=True)
    changed = 0
    for place, parts, found, old in zip(places, programs, announced, before, strict=True):
        new = _state(place)
        touched = [path for path in old.keys() | new.keys() if old.get(path, 0) != new.get(path, 0)]
        changed += bool(touched)
        for path in touched if found.exact else ():
            assert found.change_of(Path(path)), f"{path} was not announced by:\n{parts}"
    exact = sum(found.exact for found in announced)
    assert changed > _PROGRAMS / 4, "too few programs change anything"
    assert exact > _PROGRAMS / 3, "too few programs are understood"
