"""Programs that fetch and send files: curl, wget, rsync, and what asks services."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import unquote

from hermes_ext.effects._programs.call import Call
from hermes_ext.effects._programs.copying import directories
from hermes_ext.effects._words import Hole, Word, beginning


def curl(call: Call) -> None:
    """`curl URL`: writes with `-o`, `-O` and a few others."""
    call.check_options()
    folder = call.last("--output-dir")
    outputs = call.values("-o", "--output")
    for word in outputs:
        if isinstance(word, str) and "#" in word:
            call.unknown("writes files by a pattern", word)
        if word != "-":
            place = _below(folder, word)
            call.write(place)
            if call.has("--create-dirs"):
                directories(
                    call, place if isinstance(place, Hole) else os.path.dirname(place) or "."
                )
    urls = [*call.operands, *call.values("--url")]
    _sent(call, urls)
    for form in call.values("-w", "--write-out"):
        if isinstance(form, Hole) or form.startswith("@") or "%output" in form:
            call.unknown("may write a file that its format names", form)
    for url in urls:
        if isinstance(url, str) and url.startswith("@"):
            call.unknown("takes its addresses from a file", url)
        if isinstance(url, str) and url[:7].lower() == "file://":
            call.read(unquote(url[7:]))
    if call.has("-O", "--remote-name", "--remote-name-all"):
        _remote_names(call, urls, folder)


_WITH_FILES: Final = (
    "-d", "--data", "--data-ascii", "--data-binary", "--data-urlencode", "--json", "-F", "--form",
    "-H", "--header", "--url-query", "--variable",
)  # fmt: skip
_FILE_IN_DATA: Final = re.compile(r"(?:[^@<=]*=)?[@<]([^;]+)|[\w.-]+@([^;]+)")


def _sent(call: Call, urls: list[Word]) -> None:
    """Files that are sent."""
    for data in call.values(*_WITH_FILES):
        found = _FILE_IN_DATA.match(data) if isinstance(data, str) else None
        if found:
            call.read(found[1] or found[2])
    sent = call.values("-T", "--upload-file")
    for file in sent:
        call.read(file)
    for url in urls if sent else ():
        if not _FAR.match(beginning(url)):
            call.unknown("may send to a file of this machine", url)


_FAR: Final = re.compile(r"(?:https?|ftps?|sftp)://", re.IGNORECASE)


def _remote_names(call: Call, urls: list[Word], folder: Word | None) -> None:
    if call.has("-J", "--remote-header-name"):
        call.write_below(folder or ".")
        return
    for url in urls:
        if isinstance(url, Hole) or re.search(r"[\[{]", url):
            call.write_below(folder or ".")
            continue
        path = re.sub(r"[?#].*", "", url).rpartition("/")[2]
        call.write(_below(folder, path) if path else Hole())


def _below(folder: Word | None, word: Word) -> Word:
    if folder is None or isinstance(word, Hole):
        return word
    return Hole() if isinstance(folder, Hole) else os.path.join(folder, word)


def wget(call: Call) -> None:
    """`wget URL`: writes into the directory, or where `-O` says."""
    call.check_options()
    for file in call.values("--post-file", "--body-file"):
        call.read(file)
    documents = call.values("-O", "--output-document")
    for word in documents:
        if word != "-":
            call.write(word)
    if (
        not documents
        and not call.has("--spider")
        and (call.operands or call.has("-i", "--input-file"))
    ):
        call.write_below(call.last("-P", "--directory-prefix") or ".")
    if call.has("-b", "--background"):
        call.write_below(".")


_RSYNC_REMOTE: Final = re.compile(r"[^/]*:")


def rsync(call: Call) -> None:
    """`rsync SOURCE… DESTINATION`, both on this machine."""
    call.check_options()
    words = call.operands
    if any(isinstance(each, str) and _RSYNC_REMOTE.match(each) for each in words):
        call.unknown("reaches another machine through another program")
        return
    if any(isinstance(each, Hole) and (each.many or not each.prefix) for each in words):
        call.unknown("is given paths that are not known before it runs")
    for word in words[:-1] or words:
        call.do("search", word)
        if call.has("--remove-source-files") and not call.has("-n", "--dry-run"):
            call.delete(word, tree=True)
    if len(words) > 1 and not call.has("-n", "--dry-run"):
        destination = words[-1]
        call.change_below(destination)
        if call.has("-b", "--backup") and isinstance(destination, str):
            call.write_below(os.path.dirname(destination.rstrip("/")) or ".")
        call.rec.taint(destination, words[0] if len(words) == 2 else Hole())


_CLOUD_ACTIONS: Final = {
    "aws": re.compile(
        r"(?:s3 ls(?: s3://\S*)?|sts get-caller-identity|configure (?:list|get \S+)"
        r"|[\w-]+ (?:describe|get|list)-[\w-]+)\Z"
    ),
    "gcloud": re.compile(
        r"(?:(?:[\w-]+ ){1,4}(?:list|describe(?: \S+)?)|info|version|config get(?:-value)? \S+)\Z"
    ),
    "az": re.compile(r"(?:(?:[\w-]+ ){1,4}(?:list|show)|version)\Z"),
}


def cloud(call: Call) -> None:
    """`aws`, `gcloud`, `az`: what lists and shows."""
    call.check_options()
    if any(isinstance(each, Hole) for each in call.operands):
        call.unknown("is asked for what is not known before it runs")
    elif call.operands and not _CLOUD_ACTIONS[call.name].match(" ".join(map(str, call.operands))):
        call.unknown("is asked for what is not known here")
