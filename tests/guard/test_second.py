"""What is read a second time: input of programs, lists of names made on the way, scripts.

The rules are named in plain words, but by a program, a file or a pipe elsewhere in the call.
"""

from __future__ import annotations

import pytest
from tests.guard.conftest import Ground

CONFIG = "~/.hermes/config.yaml"
WIPE = "rm -rf ~/.hermes/extensions"

FED = [
    f"perl <<'E'\nunlink glob '{CONFIG}';\nE",
    f"node <<'E'\nfs.rmSync('{CONFIG}')\nE",
    f"ssh host <<'E'\nrm {CONFIG}\nE",
    f"docker exec -i c sh <<'E'\nrm {CONFIG}\nE",
    f"x={CONFIG}; perl <<E\nunlink '$x'; $UNKNOWN\nE",
    f"perl <<< \"unlink '{CONFIG}'\"",
    f"echo \"unlink '{CONFIG}'\" | perl",
    f"printf 'unlink \"%s\"\\n' {CONFIG} | sudo perl",
    f"perl < <(echo \"unlink '{CONFIG}'\")",
    f"perl <(echo \"unlink '{CONFIG}'\")",
    f"echo \"unlink '{CONFIG}'\" > >(perl)",
    f"{{ echo 1; echo \"unlink '{CONFIG}'\"; }} | perl",
    f"for w in unlink {CONFIG}; do echo $w; done | perl",
    f"f() {{ perl; }} <<'E'\nunlink '{CONFIG}'\nE\nf",
    f"echo \"unlink '{CONFIG}'\" | sed s/x/y/ | tee log.txt | perl",
    f"awk -f - <<'E'\nBEGIN {{ system(\"rm {CONFIG}\") }}\nE",
    f"python3 -m code <<'E'\nimport os; os.remove('{CONFIG}')\nE",
    f"make -f - <<'E'\nall: ; rm {CONFIG}\nE",
    f"while read -r c; do bash -c \"$c\"; done <<'E'\nrm {CONFIG}\nE",
]
LISTED = [
    "ls -d ~/.hermes/* | xargs rm -rf",
    "for f in $(ls -d ~/.hermes/*); do rm -rf $f; done",
    "H=$(cd ~/.hermes && pwd); rm -f $H/config.yaml",
    "find ~ -type f -exec truncate -s 0 {} +",
    'find ~ -type f | while read f; do : > "$f"; done',
    "for d in $(find ~ -type d -name extensions); do rm -rf $d; done",
    "fd . ~/.hermes -x rm {}",
    f"echo {CONFIG} > list; xargs -a list rm",
    "ls -d ~/.hermes/* > list; sort list | xargs rm -rf",
    "ls -d ~/.hermes/* | grep config | xargs -I{} sed -i s/a/b/ {}",
    'mapfile -t a < <(ls -d ~/.hermes/*); rm -rf "${a[@]}"',
    'a=(); while read f; do a+=("$f"); done < <(ls -d ~/.hermes/*); rm -rf "${a[@]}"',
    "x=$(ls -d ~/.hermes/*); rm -rf ${x%%z}",
    'set -- $(ls -d ~/.hermes/*); while [ $# -gt 0 ]; do rm -rf "$1"; shift; done',
    "cd ~/.hermes && ls | xargs rm -rf",
    "ls -d ~/.hermes/* | sed 's/^/rm -rf /' | bash",
    "grep -rl model ~/.hermes | xargs sed -i s/model/x/",
    f"d=$(dirname {CONFIG}); rm -rf $d/extensions",
    "x=$(echo $HOME)/.hermes; rm -rf $x/extensions",
    'cd "$(ls -d ~/.hermes)" && rm -rf *',
    "xargs rm -rf <<< $(ls -d ~/.hermes/*)",
    "f=$(find ~ -maxdepth 2 -name config.yaml | grep hermes); echo x >> $f",
]
WRITTEN = [
    f"cat > fix.sh <<'E'\n{WIPE}\nE\nbash fix.sh",
    f"printf '{WIPE}\\n' > t.sh && chmod +x t.sh && ./t.sh",
    f"echo '#!/bin/sh' > t.sh; echo '{WIPE}' >> t.sh; source t.sh",
    f"echo '{WIPE}' | sudo tee /usr/local/bin/zz; zz",
    f"cat > a.sh <<'E'\n{WIPE}\nE\nmv a.sh sub/b.sh; sh sub/b.sh",
    f"cat > a.sh <<'E'\n{WIPE}\nE\nbash -c \"$(cat a.sh)\"",
    "cat > a.sh <<'E'\nrm -rf \"$1\"\nE\nbash a.sh ~/.hermes/extensions",
    f"f() {{ cat > $1; }}; f a.sh <<'E'\n{WIPE}\nE\nbash a.sh",
    f"f=$(mktemp); echo '{WIPE}' > $f; bash $f",
    f"exec 4> a.sh; echo '{WIPE}' >&4; bash a.sh",
    f"awk 1 > a.sh <<'E'\n{WIPE}\nE\nbash a.sh",
    f"dd of=a.sh <<'E'\n{WIPE}\nE\nbash a.sh",
    f"echo \"unlink '{CONFIG}'\" > a.txt; perl a.txt",
    f"cat > x.py <<'E'\nimport os\nos.remove(os.path.expanduser('{CONFIG}'))\nE\npython3 x.py",
    f"cat > x.py <<'E'\nimport os, sys\nos.remove(sys.argv[1])\nE\npython3 x.py {CONFIG}",
    f"printf 'all:\\n\\t{WIPE}\\n' > Makefile && make",
    f'echo \'{{"scripts": {{"x": "{WIPE}"}}}}\' > package.json; npm run x',
    f"echo 'import os; os.system(\"{WIPE}\")' > conftest.py; pytest",
    f"echo '{WIPE}' > .git/hooks/pre-commit; git commit -m x",
    'for p in extensions; do echo "rm -rf ~/.hermes/$p"; done > a.sh; sh a.sh',
    "awk '{print \"rm -rf \" $0}' <<< ~/.hermes/extensions > a.sh; sh a.sh",
]
HARMLESS = [
    f"cat > notes.md <<'E'\nedit {CONFIG}, not {WIPE}\nE\nmake test",
    f"cat > body.md <<'E'\n{CONFIG}\nE\ngh pr create -F body.md",
    f"git commit -F - <<'E'\nDocs: {CONFIG}\nE",
    f"cat <<'E' | python3 -c 'import sys; print(len(sys.stdin.read()))'\n{CONFIG}\nE",
    f"python3 - <<'E'\nimport os\nprint(open(os.path.expanduser('{CONFIG}')).read())\nE",
    f"bash <<'E'\nmake test\ncat {CONFIG}\nE",
    f'jq . <<< \'{{"a": "{CONFIG}"}}\'',
    f"cat {CONFIG} | grep model; for f in $(ls src); do sed -i s/a/b/ src/$f; done",
    f"export $(cat {CONFIG} | xargs)",
    "n=$(ls ~/.hermes | wc -l); touch log-$n",
    "ls ~/.hermes; rm -f $(ls *.tmp)",
    "find ~ -name '*.pyc' -exec grep x {} +",
    "find . -name '*.py' -exec sed -i s/p/q/ {} +",
    "find . -name '*.pyc' | xargs rm -f",
    "grep -rl p . | xargs sed -i s/p/q/",
    "for f in $(git ls-files src); do sed -i s/p/q/ $f; done",
    "cat > t.sh <<'E'\n#!/bin/bash\nset -e\nnpm test\nE\nchmod +x t.sh && ./t.sh",
]


@pytest.mark.parametrize("command", FED)
def test_input_of_a_program_that_may_run_it_is_read(ground: Ground, command: str) -> None:
    assert ground.shell(command)


@pytest.mark.parametrize("command", LISTED)
def test_names_that_something_prints_are_looked_for(ground: Ground, command: str) -> None:
    assert ground.shell(command)


@pytest.mark.parametrize("command", WRITTEN)
def test_a_script_of_the_same_call_is_read(ground: Ground, command: str) -> None:
    assert ground.shell(command)


@pytest.mark.parametrize("command", HARMLESS)
def test_text_that_nothing_runs_is_no_reason(ground: Ground, command: str) -> None:
    assert ground.shell(command) is None
