"""The main job in one run: a real `hermes -z`, held to a plan by the bundled workflow-guard.

    make demo                                   # or, with everything installed:
    python -m demo.demo

Needs no network and no model: a server on 127.0.0.1 plays the model's part. Everything happens in
a scratch folder, which is removed at the end unless KEEP is set or a check failed.

PROMPT: the request, if not the usual one.
Exit code: 0, or 1 if anything was not as it should be.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text
from tests.harness.home import Run

from demo.checks import failures, unexplained
from demo.scene import PROMPT, SCENES, Scene
from demo.show import Decisions

CONFIG = {
    # Hermes would ask the model to test its edit before it may end: a longer story than this one.
    "agent": {"verify_on_stop": False},
}
EXTENSIONS = {
    "on": ["workflow-guard"],
    # With what went in and came out, so that it can be shown here; the default has digests only.
    "log": "payloads",
}
HERMES_SECONDS = 180


def main() -> int:
    """Play the scene, show it, check it."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # a terminal that has not all characters gets "?" for them
        reconfigure(errors="replace")
    console = Console(highlight=False)
    prompt = os.environ.get("PROMPT", "").strip() or PROMPT
    if prompt.startswith("-"):
        console.print("hermes -z takes no request that begins with a dash.")
        return 1
    folder = Path(tempfile.mkdtemp(prefix="hermes-ext-demo-"))
    done = False
    try:
        done = played(console, folder, prompt)
    except OSError as error:  # TimeoutError is one; its text has what Hermes printed
        console.print(Text.assemble(("FAILED ", "bold red"), str(error)), soft_wrap=True)
    finally:
        if done and not os.environ.get("KEEP"):
            shutil.rmtree(folder, ignore_errors=True)
        else:
            console.print(f"Everything is left in {folder}", soft_wrap=True)
    return 0 if done else 1


def played(console: Console, folder: Path, prompt: str) -> bool:
    """Run the scene in `folder` and report; returns whether all was as it should be."""
    with Scene(folder, extensions=EXTENSIONS, config=CONFIG) as scene:
        console.print(
            "A project with a bug, a Hermes of its own, a model that plays a script, and "
            "workflow-guard on."
        )
        if prompt != PROMPT:
            console.print("The model plays the same script whatever it is asked.")
        console.print(Text.assemble("\n$ hermes -z ", (f'"{prompt}"', "bold"), "\n"))
        decisions = Decisions(scene.decision_log, console, SCENES)
        with decisions:
            run = scene.run(prompt, HERMES_SECONDS)
        console.print(Text.assemble(("Hermes answers: ", "bold"), run.stdout.strip(), "\n"))
        wrong = failures(scene, decisions.lines, run, prompt)
        if not wrong:
            wrong = asked_why(console, scene)
    report(console, run, wrong)
    return not wrong


def asked_why(console: Console, scene: Scene) -> list[str]:
    """Show what `hermes extensions why last` says; returns what it does not say."""
    console.print(Text.assemble("$ hermes extensions ", ("why last", "bold"), "\n"))
    told = scene.hermes.cli(
        "extensions", "why", "last", timeout=HERMES_SECONDS, env={"COLUMNS": str(console.width)}
    )
    console.print(Text(told.stdout), soft_wrap=True)
    return [*unexplained(told)]


def report(console: Console, run: Run, wrong: list[str]) -> None:
    """The end: what was proved and where to look next, or what went wrong."""
    if wrong:
        for told in wrong:
            console.print(Text.assemble(("FAILED ", "bold red"), told))
        console.print(Text(f"\n{run!r}"), soft_wrap=True)
        return
    console.print(
        Text.assemble(
            ("Checked: ", "bold green"),
            "the model got what is shown above; app.py was the same at each of its requests until "
            "the plan was there, whether it was to be edited or changed in the shell, and changed "
            "after that; nothing else in the project did; a command that only reads ran; the "
            "project's test failed before and passes now.\n",
        )
    )
    console.print("Where to look next")
    for what, where in NEXT:
        console.print(Text(f"  {what:<24}{where}"), soft_wrap=True)


NEXT = (
    ("the rule you saw", "extensions/workflow-guard/__init__.py, README.md beside it"),
    ("the files of this run", "KEEP=1 make demo, then project/ and home/logs/extensions.jsonl"),
    ("another request", 'make demo PROMPT="What does app.py do?"'),
    ("in your own Hermes", "README.md"),
)

if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
