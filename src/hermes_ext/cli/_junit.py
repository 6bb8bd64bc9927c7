"""JUnit XML of what `doctor` found: a test case for each check, and for each hook and surface."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from hermes_ext._files import replace_file
from hermes_ext.doctor import CHECKS
from hermes_ext.exceptions import HermesExtError
from hermes_ext.hosts.hermes import checks

Findings = Sequence[Mapping[str, Any]]

# What XML 1.0 cannot hold, in whatever way it is written.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_OF_THE_CANARY = "canary-"


def write_junit(file: Path, payload: Mapping[str, Any]) -> None:
    """Put it into `file`, whole or not at all; its folder is made.

    Raises HermesExtError, which names the file, where that cannot be.
    """
    target = file.expanduser()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, junit_xml(payload), mode=0o644, durable=False)
    except OSError as error:
        raise HermesExtError(
            f"the JUnit file cannot be written: {error.strerror or error}",
            path=target,
            hint="Give --junit a file in a folder that can be written",
        ) from error


def junit_xml(payload: Mapping[str, Any]) -> bytes:
    """The document for what `doctor --json` prints."""
    root = Element("testsuites", name="hermes-ext doctor")
    suites = [_suite(root, "checks", _checks(payload["findings"]), 0.0)]
    canary = payload["canary"]
    if canary is not None:
        suites.append(_suite(root, "canary", _proofs(canary, payload), canary["seconds"]))
    for key in ("tests", "failures", "errors", "skipped"):
        root.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(root: Element, name: str, cases: Iterable[Element], seconds: float) -> Element:
    suite = SubElement(root, "testsuite", name=f"hermes-ext.{name}")
    suite.extend(cases)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("testcase/failure"))))
    suite.set("errors", "0")
    suite.set("skipped", str(len(suite.findall("testcase/skipped"))))
    suite.set("time", f"{seconds:.3f}")
    return suite


def _case(group: str, name: str) -> Element:
    return Element("testcase", classname=f"hermes-ext.{group}", name=name, time="0")


def _checks(findings: Findings) -> Iterator[Element]:
    by_check = {**CHECKS, **checks.CHECKS}
    for check, codes in by_check.items():
        yield _check(check, [each for each in findings if each["code"] in codes])
    known = {code for codes in by_check.values() for code in codes}
    for code in dict.fromkeys(each["code"] for each in findings):
        if code not in known and not code.startswith(_OF_THE_CANARY):
            yield _check(code, [each for each in findings if each["code"] == code])


def _check(name: str, findings: Findings) -> Element:
    case = _case("checks", name)
    errors = [each for each in findings if each["severity"] == "error"]
    others = [each for each in findings if each["severity"] != "error"]
    if errors:
        _fail(case, errors[0]["code"], errors[0]["message"], map(_told, errors))
    if others:
        SubElement(case, "system-out").text = _text("\n\n".join(map(_told, others)))
    return case


def _proofs(canary: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[Element]:
    for proof in canary["proofs"]:
        case = _case(f"canary.{proof['surface']}", proof["hook"])
        if proof["status"] == "skipped":
            SubElement(case, "skipped", message=_text(proof["detail"] or ""))
        elif proof["status"] != "ok":
            told = [seam["told"] for seam in proof["seams"]]
            blame = [f"the doing of the plugin {name}" for name in canary["culprits"]]
            _fail(case, proof["status"], proof["detail"] or proof["status"], [*told, *blame])
        yield case
    if canary["proofs"]:
        return
    case = _case("canary", "tried in Hermes")
    errors = [each for each in payload["findings"] if each["code"].startswith(_OF_THE_CANARY)]
    if any(each["severity"] == "error" for each in errors):
        _fail(case, "not-tried", canary["why_not"], map(_told, errors))
    else:
        SubElement(case, "skipped", message=_text(canary["why_not"]))
    yield case


def _fail(case: Element, kind: str, message: str, told: Iterable[str]) -> None:
    failure = SubElement(case, "failure", type=_text(kind), message=_text(message))
    failure.text = _text("\n\n".join(told))


def _told(finding: Mapping[str, Any]) -> str:
    who = f"{finding['extension']}: " if finding["extension"] else ""
    lines = [f"{finding['severity']}: {who}{finding['message']}"]
    if finding["where"]:
        lines.append(f"at {finding['where']}")
    return "\n".join([*lines, *filter(None, [finding["hint"]])])


def _text(text: str) -> str:
    return _NO_XML.sub("\ufffd", text)
