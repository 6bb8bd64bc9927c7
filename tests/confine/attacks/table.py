"""The table of docs/confinement.md; `python -m tests.confine.attacks.table` writes it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.confine.attacks.attacking import ATTACKS

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs/confinement.md"
_BETWEEN: Final = re.compile(r"(?s)(<!-- attacks -->\n).*?(<!-- end of attacks -->)")
_NOT_TRIED: Final = "-"

# Root without Landlock is confined by bubblewrap only.
CELLS: Final = (
    ("root", "namespaces and Landlock"),
    ("root", "bubblewrap"),
    ("root", "Landlock alone"),
    ("user", "namespaces and Landlock"),
    ("user", "namespaces"),
    ("user", "bubblewrap"),
    ("user", "Landlock alone"),
)


def results(user: str, rung: str) -> dict[str, str]:
    """What came of each attack, by its name."""
    base = tempfile.mkdtemp(prefix="hermes-ext-attacks-")
    cell = json.dumps({"user": user, "rung": rung, "base": base})
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.confine.attacks.cell", cell],
            cwd=ROOT,
            check=False,
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        shutil.rmtree(base, ignore_errors=True)
    assert done.returncode == 0, f"{user}, {rung}: {done.stderr}"
    found: dict[str, str] = json.loads(done.stdout)
    return found


def written() -> dict[tuple[str, str], dict[str, str]]:
    """What the page says, by cell and attack."""
    match = _BETWEEN.search(PAGE.read_text())
    assert match
    rows = [
        [each.strip() for each in line.strip("|").split("|")]
        for line in match[0].splitlines()
        if line.startswith("|")
    ]
    titles = {attack.title: name for name, attack in ATTACKS.items()}
    return {
        cell: {titles[row[0]]: row[column].strip("*") for row in rows[2:]}
        for column, cell in enumerate(CELLS, 1)
    }


def shown(result: str) -> str:
    """One cell of the table."""
    return result if result in ("out", "held") else _NOT_TRIED


def _page(found: dict[tuple[str, str], dict[str, str]]) -> str:
    heads = [f"{user}: {rung}" for user, rung in CELLS]
    lines = [["attack", *heads], ["---"] * (len(CELLS) + 1)]
    for name, attack in ATTACKS.items():
        cells = [shown(found[cell][name]) for cell in CELLS]
        lines.append([attack.title, *("**out**" if cell == "out" else cell for cell in cells)])
    reasons = [
        f"- {attack.title}: {who}: {reason}"
        for attack in ATTACKS.values()
        for who, reason in attack.impossible.items()
        if reason
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    why = f"Not tried ({_NOT_TRIED}), because unconfined it fails too:"
    return "\n\n".join((table, why, "\n".join(reasons)))


def main() -> None:
    """Attack on every rung and write the table."""
    found = {cell: results(*cell) for cell in CELLS}
    for cell, each in found.items():
        if "unavailable" in each:
            sys.exit(f"{cell}: {each['unavailable']}")
        if missing := [name for name, result in each.items() if result.startswith("not here")]:
            sys.exit(f"{cell}: this machine cannot show {missing}")
    text = _BETWEEN.sub(lambda match: f"{match[1]}\n{_page(found)}\n\n{match[2]}", PAGE.read_text())
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
