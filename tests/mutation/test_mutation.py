"""The tool that tries the tests: which faults it makes, and where it puts them again."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from tests.mutation.__main__ import equivalent, main
from tests.mutation.mutants import mutants_of, place_of, sample
from tests.mutation.runs import Stages, read_results, run

ROOT = Path(__file__).parents[2]
CODE = dedent('''\
    def allowed(age, names, *, strict=False):
        """True for those who may."""
        if age < 18 or not names:
            raise ValueError("too young")
        for name in names:
            if name == "root":
                continue
            log(name)
        return age - 1
''')


@pytest.mark.parametrize(
    ("operator", "old", "new"),
    [
        ("comparison", "if age < 18 or not names:", "if age <= 18 or not names:"),
        ("and-or", "if age < 18 or not names:", "if age < 18 and not names:"),
        ("negation", "if age < 18 or not names:", "if age < 18 or names:"),
        ("negation", "if age < 18 or not names:", "if not (age < 18 or not names):"),
        ("guard", "if age < 18 or not names:", "if False:"),
        ("off-by-one", "if age < 18 or not names:", "if age < 19 or not names:"),
        ("raise", 'raise ValueError("too young")', "pass"),
        ("constant", 'if name == "root":', "if name == 'root_':"),
        ("loop", "continue", "break"),
        ("statement", "log(name)", "pass"),
        ("arithmetic", "return age - 1", "return age + 1"),
        ("return", "return age - 1", "return None"),
    ],
)
def test_operators(operator: str, old: str, new: str) -> None:
    """Each operator changes the lines that it names, and no others."""
    change = (operator, old, new)
    (mutant,) = [
        each for each in mutants_of(CODE, "a.py") if (each.operator, each.old, each.new) == change
    ]

    assert mutant.function == "allowed"
    assert mutant.applied(CODE).splitlines() == [
        line.replace(old, new) for line in CODE.splitlines()
    ]


def test_what_no_test_can_see_is_left_alone() -> None:
    """Documentation, annotations and overloads stay."""
    text = 'from typing import overload\n\n\n@overload\ndef f(a: "x.y") -> "z": ...\n"""Text."""\n'

    assert mutants_of(text, "a.py") == []


def test_every_mutant_of_the_package_is_another_program() -> None:
    """Of some hundred mutants each can be parsed, and differs from the code."""
    for mutant in sample(ROOT, ["src/hermes_ext/chain"], count=200, seed=1):
        text = (ROOT / mutant.file).read_text(encoding="utf-8")
        changed = ast.parse(mutant.applied(text))
        assert ast.dump(changed) != ast.dump(ast.parse(text)), mutant


def test_what_is_said_to_be_no_other_program_is_a_mutant_of_this_code() -> None:
    """One each: what was written for code that is gone, or for several, explains too much."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]

    for function, old, new, nth in equivalent():
        found = [
            one
            for text in texts
            if old.splitlines()[0] in text
            for one in mutants_of(text, "")
            if (one.function, one.old, one.new, one.nth) == (function, old, new, nth)
        ]
        assert len(found) == 1, (function, old, found)


def test_a_seed_chooses_the_same_mutants_each_time() -> None:
    chosen = [sample(ROOT, ["src/hermes_ext/trust"], count=5, seed=seed) for seed in (1, 1, 2)]

    assert chosen[0] == chosen[1] != chosen[2]


def test_a_mutant_is_put_again_where_its_function_has_moved_to() -> None:
    """By the names of function and lines, private or not; the second of equal lines stays so."""
    before = "class A:\n    def f(self):\n        g()\n        g()\n"
    now = f"import os\n\n\ndef g():\n    pass\n\n\n{before}".replace("f(self", "_f(self")
    second = mutants_of(before, "old/a.py")[1]

    place = place_of(second, {"other.py": "def f():\n    pass\n", "new/b.py": now})

    assert place is not None
    assert (place.file, place.line, place.function) == ("new/b.py", 11, "A._f")
    assert place.applied(now) == now.removesuffix("g()\n") + "pass\n"
    assert place_of(second, {"new/b.py": now.replace("g()", "h()")}) is None


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one module and one test, which sees half of what can go wrong."""
    (tmp_path / "src/chain").mkdir(parents=True)
    (tmp_path / "src/chain/sums.py").write_text("def total(a, b):\n    return a + b\n")
    (tmp_path / "tests/chain").mkdir(parents=True)
    (tmp_path / "tests/chain/test_sums.py").write_text(
        "import sys\n\n\ndef test_total(monkeypatch):\n"
        "    monkeypatch.syspath_prepend('src/chain')\n"
        "    import sums\n    assert sums.total(2, 0) == 2\n"
    )
    return tmp_path


def test_a_run_tells_killed_from_survived_and_leaves_the_code_as_it_was(checkout: Path) -> None:
    code = (checkout / "src/chain/sums.py").read_bytes()
    mutants = mutants_of(code.decode(), "src/chain/sums.py")
    stages = Stages.of(checkout)

    results = [run(each, stages, python=sys.executable, timeout=60) for each in mutants]

    assert {each.mutant.operator: each.outcome for each in results} == {
        "arithmetic": "survived",
        "return": "killed",
    }
    assert {each.by for each in results} == {"", "tests/chain/test_sums.py::test_total"}
    assert (checkout / "src/chain/sums.py").read_bytes() == code


def test_a_run_goes_on_where_it_ended(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is in the results is not run again; the killed ones are run again in newer code."""
    results, again = checkout / "results.jsonl", checkout / "again.jsonl"
    options = ["--root", str(checkout), "--python", sys.executable]
    test = checkout / "tests/chain/test_sums.py"
    test.write_text(test.read_text().replace("(2, 0) == 2", "(2, 1) == 3"))

    for _ in range(2):
        assert main([str(results), "src", *options]) == 0
    assert [each.outcome for each in read_results(results)] == ["killed"]
    (checkout / "src/chain/sums.py").write_text("def total(a, b):\n    return b + a\n")
    assert main([str(again), "--again", str(results), *options]) == 0
    assert [each.outcome for each in read_results(again)] == ["gone"]
    assert "1 of 1 killed" in capsys.readouterr().out
