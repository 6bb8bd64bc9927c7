"""The table of versions: its rows are true where they are run, and the docs have them."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.hermes.versions import HOSTS, LACKS, PAGE, page

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
FORKS = [host.distribution for host in HOSTS if host.distribution != "hermes-agent"]


def test_the_docs_have_the_table() -> None:
    """docs/hermes.md has a line for each version, with all that it cannot do."""
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(written), "run python -m tests.hermes.versions"


def test_each_row_names_hosts_and_tests() -> None:
    """A row is about versions that are tested, and all tests that it names are there."""
    files = sorted({f"tests/{each.partition('::')[0]}" for lack in LACKS for each in lack.tests})
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    ids = {line.removeprefix("tests/") for line in listed}
    for lack in LACKS:
        assert set(lack.hosts) <= {host.id for host in HOSTS}, lack
        assert lack.what
        assert lack.reason
        for each in lack.tests:
            assert any(node_id == each or node_id.startswith(f"{each}[") for node_id in ids), each


def test_a_row_that_is_no_longer_true_fails_the_run(pytester: pytest.Pytester) -> None:
    """What a row covers has to fail, one of its parameters or all; nothing else is touched."""
    pytester.makeconftest(
        """
        import pytest
        from tests.hermes.versions import Lack, expect

        def pytest_configure(config):
            config.addinivalue_line("markers", "each_host")

        @pytest.hookimpl(tryfirst=True)
        def pytest_collection_modifyitems(items):
            rows = ("test_it.py::test_it[2]", "test_it.py::test_others")
            expect(items, [Lack(("0.17.0",), "counting", "the host's fault", rows)])
        """
    )
    pytester.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.parametrize("n", [1, 2])
        def test_it(n):
            assert n == 1

        @pytest.mark.parametrize("n", [1, 2])
        def test_others(n):
            assert n == 1

        def test_others_too():
            pass
        """
    )
    done = pytester.runpytest_inprocess("-p", "no:asyncio", "-p", "no:cacheprovider")
    done.assert_outcomes(passed=2, xfailed=2, failed=1)
    done.stdout.fnmatch_lines(["*XPASS(strict)*the host's fault*"])


def test_forks_are_nothing_to_install() -> None:
    """A fork is named where it is said what is tested, and in nothing that a user follows."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert extras["optional-dependencies"]["hermes"] == ["hermes-agent>=0.17"]
    assert not re.search("|".join(FORKS), str(extras))
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("extensions/*/README.md")]
    naming = {file for file in pages if re.search("|".join(FORKS), file.read_text("utf-8"))}
    assert naming <= {PAGE}
