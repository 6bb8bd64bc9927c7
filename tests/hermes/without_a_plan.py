"""What is run without a plan: commands that write in ways that are easily missed, and tests.

Programs that few machines have are played by small scripts that do the one thing in question in
the same way: they run what an option, a variable or a file names, or write where it says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

WRITES: Final = {
    # bash evaluates a value again.
    "a prompt string": """a=('$(touch pwn)'); echo "${a[@]@P}\"""",
    "an index in arithmetic": "x='a[$(touch pwn)]'; for ((i=x;i<1;i++)); do :; done",
    "an index in an offset": "n='x[$(touch pwn)]'; a=(1 2); echo ${a[@]:n}",
    "an index that is declared": "typeset -a 'b=($(touch pwn))'",
    "an index that is tested": "[[ -v 'a[$(touch pwn)]' ]]",
    "an index that is printed to": "printf -v 'a[$(touch pwn)]' x",
    # Readers that write.
    "sed's script": "sed ':a w app.py' data.json",
    "curl to a file": "curl -sT - FILE://$PWD/app.py <<< x",
    "SQL that writes": """sqlite3 :memory: "select writefile('app.py', 'x')\"""",
    "a formatter's second file": "python3 -m json.tool - app.py < data.json",
    "a linter in place": "jsonlint -i data.json",
    "a version that is set": "uv version 2.0.0",
    # Options.
    "a file of hooks": "pnpm ls --config.pnpmfile=plans/hooks.md",
    "a program to connect by": "hg id --ssh 'touch pwn;' ssh://h/x",
    "a folder for logs": "npm ls --logs-dir=logs",
    # Variables.
    "a program in a configuration": "AWS_CONFIG_FILE=plans/aws.md aws sts get-caller-identity",
    "a log of the machine": "_JAVA_OPTIONS=-Xlog:all:file=app.py java -version",
    "a folder of settings": "CLOUDSDK_CONFIG=settings gcloud config list",
    "a file that is run first": "PSQLRC=./psqlrc psql -c 'select 1'",
    # Standard input.
    "perl": "perl <<'EOF'\nunlink 'app.py';\nEOF",
    "node": "node <<'EOF'\nrequire('fs').unlinkSync('app.py')\nEOF",
    "another shell": "ssh h <<'EOF'\nrm -rf src\nEOF",
    "statements in a container": "docker exec -i db psql -U a <<'EOF'\nDROP TABLE users;\nEOF",
    "a process substitution": "bash <(echo touch pwn)",
    # Names that are made at run time.
    "names of xargs": "ls -d ~/notes/* | xargs rm -rf",
    "names in a loop": "for f in $(ls -d ~/notes/*); do rm -rf $f; done",
    "names of a directory": "H=$(cd ~/notes && pwd); rm -f $H/a.txt",
    "names that find has": "find ~ -type f -exec truncate -s 0 {} +",
    "names in a file": "ls -d ~/notes/a.txt > plans/list.md; xargs -a plans/list.md rm",
    # Written and run in one call.
    "a script": "cat > plans/fix.md <<'E'\nrm -rf ~/notes\nE\nbash plans/fix.md",
    "a script of its own": (
        "printf 'rm -rf ~/notes\\n' > plans/t.md && chmod +x plans/t.md && ./plans/t.md"
    ),
    "a script in the project": "cat > fix.sh <<'E'\nrm -rf ~/notes\nE\nbash fix.sh",
    # What tests and builds could do.
    "a test": "python -m pytest -q writing.py",
    "a target": "make all",
    "a script of the package": "npm run build",
    "a hook of git": "git -c core.fsmonitor=./hook.sh status",
}
"""Each changes the project or the home where nothing keeps it from that."""

READS: Final = (
    "python -m unittest",
    "python -m pytest",
    ".venv/bin/pytest -q",
    "uv run pytest -q",
    "npm test",
    "npm run lint",
    "npm pack --dry-run",
    "npx eslint .",
    "./gradlew test",
    "make check",
    "ruff check .",
    "ruff format --check .",
    "mypy app.py",
    "python -c 'import app; print(app.add(1, 2))'",
    "git status",
    "git log",
    "git diff",
    "git stash list",
    "cargo install --list",
    "go mod verify",
    "bat --pager never app.py",
    "aws lightsail get-instances",
    "kubectl kustomize",
    "pnpm outdated --global",
    "for d in src; do find $d -name '*.py'; done",
    "python -m pytest missing.py",
    "ruff check data.json",
    "exit 3",
)
"""Each gives the same status and output as a bare run.

Not here, because it asks a registry: `npm audit --audit-level info`.
"""

_RUNS_ITS_INPUT: Final = "shift\nexec sh\n"
_TELLS: Final = 'echo "${0##*/} $*"\n'

PROGRAMS: Final = {
    "aws": """\
[ -z "$AWS_CONFIG_FILE" ] || sh -c "$(sed -n 's/^credential_process *= *//p' "$AWS_CONFIG_FILE")"
"""
    + _TELLS,
    "bat": _TELLS,
    "cargo": _TELLS,
    "docker": 'shift 3\nexec "$@"\n',
    "gcloud": """\
[ -z "$CLOUDSDK_CONFIG" ] || mkdir -p "$CLOUDSDK_CONFIG/logs"
"""
    + _TELLS,
    "go": _TELLS,
    "hg": 'sh -c "$3 $4"\n',
    "java": """\
for each in $_JAVA_OPTIONS; do
    case $each in -Xlog:all:file=*) echo started > "${each##*=}" ;; esac
done
"""
    + _TELLS,
    "jsonlint": 'echo "{}" > "$2"\n',
    "kubectl": _TELLS,
    "pnpm": """\
for each; do
    case $each in --config.pnpmfile=*) sh "${each#*=}" ;; esac
done
"""
    + _TELLS,
    "psql": r"""
run() { sed -n 's/^\\! //p; s/^DROP TABLE \(.*\);/rm \1.table/p' | sh; }
[ -z "$PSQLRC" ] || run < "$PSQLRC"
case $* in *-c*) ;; *) run ;; esac
"""
    + _TELLS,
    "ssh": _RUNS_ITS_INPUT,
    "uv": """\
case $1 in
    run) shift; exec "$@" ;;
    version) echo "version = '$2'" > pyproject.toml ;;
esac
""",
}
"""By name, the text of a shell script that is found first."""

_TEST: Final = """\
import unittest

import app


class Adds(unittest.TestCase):
    def test_add(self) -> None:
        self.assertEqual(app.add(1, 2), 3)
"""

FILES: Final = {
    "app.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
    "test_app.py": _TEST,
    "writing.py": "def test_it():\n    open('app.py', 'w').write('x')\n",
    "src/more.py": "MORE = 1\n",
    "data.json": '{"a": 1}\n',
    "users.table": "1\n",
    "psqlrc": "\\! touch pwn\n",
    "hook.sh": "#!/bin/sh\ntouch pwn\n",
    "gradlew": "#!/bin/sh\necho BUILD SUCCESSFUL\n",
    ".venv/bin/pytest": '#!/bin/sh\nexec python -m pytest "$@"\n',
    "node_modules/eslint/package.json": (
        '{"name": "eslint", "version": "1.0.0", "bin": {"eslint": "bin.js"}}\n'
    ),
    "node_modules/eslint/bin.js": "#!/usr/bin/env node\nconsole.log('no problems')\n",
    "node_modules/.bin/eslint": "#!/usr/bin/env node\nconsole.log('no problems')\n",
    "package.json": (
        '{"name": "p", "version": "1.0.0", "scripts": {"test": "node test.js", '
        '"lint": "node test.js", "build": "node build.js"}, '
        '"devDependencies": {"eslint": "1.0.0"}}\n'
    ),
    "test.js": "console.log('1 passed')\n",
    "build.js": "require('fs').writeFileSync('app.py', 'x')\n",
    "server.py": (
        "import http.server as h\n"
        "s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler)\n"
        "print(s.server_port, flush=True)\ns.serve_forever()\n"
    ),
    "fetch.py": (
        "import sys, urllib.request\n"
        "print(urllib.request.urlopen(f'http://127.0.0.1:{sys.argv[1]}/data.json').status)\n"
    ),
    "link.py": "import os, sys\nos.symlink(*sys.argv[1:])\n",
    "Makefile": "all:\n\t@echo x > app.py\ncheck:\n\tpython -m unittest -q\n",
    ".npmrc": "update-notifier=false\n",
    ".gitignore": "plans/\nnode_modules/\n.venv/\n",
    "plans/hooks.md": "touch pwn\n",
    "plans/aws.md": "credential_process = touch pwn\n",
}
"""A project, by path."""

RUNNABLE: Final = ("hook.sh", "gradlew", ".venv/bin/pytest", "node_modules/.bin/eslint")


def put_programs(folder: Path) -> None:
    """Make the scripts of `PROGRAMS`, and run what is found there."""
    folder.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}")
        (folder / name).chmod(0o755)


def put_project(folder: Path) -> None:
    """Make the project of `FILES`."""
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    for path in RUNNABLE:
        (folder / path).chmod(0o755)
