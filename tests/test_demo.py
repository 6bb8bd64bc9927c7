"""`make demo`: it passes as it is, and fails where the rule does not hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.hermes

ROOT = Path(__file__).resolve().parents[1]


def play(tmp_path: Path, change: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    """Run the demo, after `change` to its module, without a terminal."""
    program = f"import sys\nfrom demo import demo\n{change}\nsys.exit(demo.main())\n"
    scratch = {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path), "COLUMNS": "80", "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ} | scratch | env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_the_demo_passes(tmp_path: Path) -> None:
    """Each decision is shown in 80 columns without colour, and nothing is left behind."""
    run = play(tmp_path)
    assert run.returncode == 0, run
    assert "[workflow-guard] /start-feature Fix the bug in app.py" in run.stdout
    assert run.stdout.count("BLOCKED") == 2
    assert run.stdout.count("allowed ") >= 2
    assert "confined     [workflow-guard]" in run.stdout
    assert "2. The shell way around" in run.stdout
    why = "".join(run.stdout.partition("why last")[2].split())
    assert why.startswith("workflow-guardblockedterminalDecidedby:workflow-guardBecause:Thereis")
    # What follows is to be copied, and not wrapped.
    shown = run.stdout.partition("why last")[0]
    assert max(map(len, shown.splitlines())) <= 80
    assert "\x1b" not in run.stdout
    assert list(tmp_path.iterdir()) == []


def test_another_request(tmp_path: Path) -> None:
    """A request that is no request to implement something stays as it is; the guard holds."""
    run = play(tmp_path, PROMPT="What does [app.py] do?", KEEP="1")
    assert run.returncode == 0, run
    assert "unchanged" in run.stdout
    assert 'hermes -z "What does [app.py] do?"' in run.stdout
    [kept] = tmp_path.iterdir()
    assert (kept / "project/plans/active/plan.md").is_file()
    assert str(kept) in run.stdout


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("demo.EXTENSIONS = {'on': [], 'log': 'payloads'}", "the request was not rewritten"),
        (
            "demo.EXTENSIONS['workflow-guard'] = {'allowed_paths': ['.'], 'allowed_suffixes': []}",
            "app.py had changed before request 2",
        ),
        ("demo.HERMES_SECONDS = 0.2", "still running after 0.2 s"),
    ],
    ids=["off", "allowed", "late"],
)
def test_the_demo_fails(tmp_path: Path, change: str, told: str) -> None:
    """Where the rule does not hold, or Hermes does not end, it exits 1 and says what is wrong."""
    run = play(tmp_path, change)
    assert run.returncode == 1, run
    assert told in " ".join((run.stdout + run.stderr).split())
    [kept] = tmp_path.iterdir()
    assert str(kept) in run.stdout
