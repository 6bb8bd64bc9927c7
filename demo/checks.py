"""What must be true of a run, from the model's request log and the file tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.harness.home import Run

from demo.scene import BUGGY, FIXED, PLAN, PROMPT, SCRIPT, Scene
from hermes_ext.testing.model_server import ModelRequest

# workflow-guard's own words, see extensions/workflow-guard/extension.yaml.
REMINDER = "There is no plan for this project yet"
GUARDRAILS = f"There is a plan: {PLAN}"
COMMAND = "/start-feature"

_PLANNED = 4  # requests until the plan is there


def failures(scene: Scene, decisions: list[dict[str, Any]], run: Run, prompt: str) -> list[str]:
    """Every check that failed, in words; empty if all is as it should be."""
    requests = scene.model.main_requests
    if len(requests) != len(SCRIPT):
        return [f"the model was asked {len(requests)} times, not {len(SCRIPT)} times", *_ended(run)]
    return [
        *_ended(run),
        *_input(requests[0], decisions, prompt),
        *_instructions(requests),
        *_results(requests),
        *_files(scene),
        *_logged(decisions),
    ]


def unexplained(told: Run) -> Iterator[str]:
    """What `why last` leaves out of the last refusal: who, what, why, by which setting, where."""
    text = " ".join(told.stdout.split())
    for needed in (
        "workflow-guard blocked terminal",
        "Because: There is no plan yet",
        "extensions.workflow-guard.allowed_paths",
        "workflow-guard/__init__.py:",
        "hermes extensions disable workflow-guard",
    ):
        # A path may be wrapped anywhere.
        if needed.replace(" ", "") not in text.replace(" ", ""):
            yield f"hermes extensions why last does not say {needed!r}"


def _ended(run: Run) -> Iterator[str]:
    if run.returncode != 0:
        yield f"hermes ended with {run.returncode}"
    if run.stdout.strip() != SCRIPT[-1].text:
        yield "what hermes printed is not the model's last answer"


def _input(first: ModelRequest, decisions: list[dict[str, Any]], prompt: str) -> Iterator[str]:
    rewritten = [
        line["payloads"]["out"]
        for line in decisions
        if line["hook"] == "transform_user_input" and line["action"] == "rewrite"
    ]
    if prompt == PROMPT and rewritten != [f"{COMMAND} {prompt}"]:
        yield f"the request was not rewritten to {COMMAND} once, but to {rewritten}"
    expected = rewritten[0] if rewritten else prompt
    if first.last_user != expected:
        yield f"the model was asked {first.last_user!r}, not {expected!r}"


def _instructions(requests: list[ModelRequest]) -> Iterator[str]:
    for number, request in enumerate(requests, 1):
        planned = number > _PLANNED
        for name, text, wanted in (
            ("reminder to plan", REMINDER, not planned),
            ("guardrails", GUARDRAILS, planned),
        ):
            found = request.system.count(text)
            if found != wanted:
                told = f"{found} times in the system prompt, not {'once' if wanted else 'absent'}"
                yield f"request {number}: the {name}: {told}"


def _results(requests: list[ModelRequest]) -> Iterator[str]:
    results = [text for _, text in requests[-1].tool_results]
    if len(results) != len(SCRIPT) - 1:
        yield f"the model got {len(results)} tool results, not {len(SCRIPT) - 1}"
        return
    edit, shell, look, plan, fix = results
    for name, result in (("the first edit's", edit), ("the shell command's", shell)):
        if "[workflow-guard]" not in result or '"error"' not in result:
            yield f"{name} result is no error of workflow-guard: {result}"
    if "result -= price" not in look:
        yield f"the command that only reads did not show the file: {look}"
    for name, result in (("the plan's", plan), ("the second edit's", fix)):
        if "workflow-guard" in result:
            yield f"{name} result is a refusal: {result}"


def _files(scene: Scene) -> Iterator[str]:
    expected = [*[BUGGY] * (len(SCRIPT) - 1), FIXED]
    for number, (state, wanted) in enumerate(zip(scene.states, expected, strict=True), 1):
        if state != wanted and wanted == BUGGY:
            yield f"app.py had changed before request {number}, without a plan"
        elif state != wanted:
            yield "app.py is not as it should be after the edit that the plan allowed"
    after = scene.files()
    names = scene.before.keys() | after.keys()
    changed = {name for name in names if scene.before.get(name) != after.get(name)}
    if changed != {"app.py", PLAN}:
        yield f"other files changed than app.py and {PLAN}: {sorted(changed)}"
    if not scene.failed_before:
        yield "the project's test passed before the fix, so it proves nothing"
    if not scene.test_passes():
        yield "the project's test does not pass after the fix"


def _logged(decisions: list[dict[str, Any]]) -> Iterator[str]:
    calls = [line for line in decisions if line["hook"] == "intercept_tool_call"]
    told = [(line["tool"], line["action"], line.get("blocked_by")) for line in calls]
    expected = [
        ("patch", "block", "workflow-guard"),
        ("terminal", "block", "workflow-guard"),
        ("terminal", "confine", None),
        ("write_file", "pass", None),
        ("patch", "pass", None),
    ]
    if told != expected:
        yield f"the decision log tells of other tool calls: {told}"
