"""Templates for text that is read a second time: values, input, lists of names, scripts."""

from __future__ import annotations

from typing import Final

__all__ = ["EVALUATED", "FED", "KEPT", "MADE", "SCRIPTS"]

# Ways in which a name or a word comes to hold code; `x` and `$1` are what is evaluated then.
_HELD: Final = (
    "x='a[$(touch «fresh»)]'; set -- \"$x\"; {}",
    "x='a[`touch «fresh»`]'; set -- \"$x\"; {}",
    "y='a[$(touch «fresh»)]'; x=y; set -- x; {}",
    "set -- 'a[$(touch «fresh»)]'; x=$1; {}",
    "echo 'a[$(touch «fresh»)]' > «new:1»; read -r x < «new:1»; set -- \"$x\"; {}",
    "f() {{ local x=$1; {}; }}; f 'a[$(touch «fresh»)]'",
    "((x=1)); x=('a[$(touch «fresh»)]'); set -- \"${{x[0]}}\"; {}",
    "x='a[$(touch «fresh»)]+'; x+=$((1)); set -- \"$x\"; {}",
    "for x in 1 'a[$(touch «fresh»)]'; do set -- \"$x\"; {}; done",
    "x=3; set -- 4; {}; «w»",
    "x=$((1 + 1)); set -- 5; {}; «w»",
)
_EVALUATING: Final = (
    "((x))",
    "(($1 > 0))",
    "((x += $1))",
    "echo $((x + 1)) $(( $1 ))",
    "echo $[x]",
    "let y=x",
    "[[ x -eq 0 ]]",
    "[[ $1 -lt ${{x}} ]]",
    "for ((i=x; i<0; i++)); do :; done",
    "for ((i=0; i<$1; i++)); do break; done",
    "b=(1 2); echo ${{b[x]}} ${{b[$1]}}",
    "b=([x]=1)",
    "b[$1]=1",
    'b=(1 2); echo "${{b[@]:x}}"',
    "s=abc; echo ${{s:0:$1}}",
    "echo ${{@:x}}",
    "declare -i n; n=$1",
    "cat <<E\n$((x)) ${{s:x}}\nE\n",
    '[ -v "$1" ]',
    "[[ -v $x ]]",
    'printf -v "$1" 1',
    'echo "${{!x}}"',
    "while ((x)); do break; done",
    "unset \"b[$1]\"; b=(1); unset 'b[x]'",
)
EVALUATED: Final = (
    *(held.format(each.format()) for held in _HELD for each in _EVALUATING),
    *(
        f"{before}'$(touch «fresh»)'{behind}"
        for before, behind in (
            ("x=", '; echo "${x@P}"'),
            ("a=(", ') ; echo "${a[@]@P}"'),
            ("set -- ", '; echo "${@@P}" ${1@P}'),
            ("PS4=", "; set -x; :"),
        )
    ),
    *(
        f"{declare} {what}"
        for declare in ("declare -a", "typeset -a", "declare -A", "readonly -a")
        for what in (
            "'b=([0]=$(touch «fresh»))'",
            '"b=(\\$(touch «fresh»))"',
            "b='($(touch «fresh»))'",
        )
    ),
    "b=(); declare 'b=($(touch «fresh»))'",
    "b=(); x='($(touch «fresh»))'; typeset b=\"$x\"",
    "mapfile -tC 'touch «fresh» #' -c1 a < list.txt",
    "readarray -c1 -C'touch «fresh» #' a < list.txt",
    "exec {a[$(touch «fresh»)]}>/dev/null",
    "((x=1)); trap 'x=\"a[\\$(touch «fresh»)]\"' DEBUG; ((x)); ((x))",
    "y=5; x5='a[$(touch «fresh»)]'; x=1; ((x$y))",
    "unset SECONDS; SECONDS='a[$(touch «fresh»)]'; ((SECONDS))",
    "x='a[$(touch «fresh»)]'; (( 0 && (x=1) )); ((x))",
    "i=0; while ((i < 2)); do i=$((i + 1)); done; «w»",
    "n=2; for ((i=0; i<n; i++)); do echo $i; done; «w»",
    'a=(1 2 3); s=0; for x in "${a[@]}"; do ((s += x)); done; echo ${#a[@]} ${a[1]}; «w»',
    "x=abcdef; echo ${x:1:3} ${x^^} ${x%f} ${x/b/c} ${#x} ${x@Q}; «w»",
)

# Text that programs are fed, in ways in which shells allow it.
_FED: Final = (
    "{run} <<'E'\n{text}\nE",
    "{run} <<E\n{text}\nE",
    "x=`cat <<'E'\n{text}\nE\n`; {run} <<E\n$x\nE",
    "cat <<'E' | {run}\n{text}\nE",
    "{run} < <(cat <<'E'\n{text}\nE\n)",
    "x=$(cat <<'E'\n{text}\nE\n); {run} <<< \"$x\"",
    "x=$(cat <<'E'\n{text}\nE\n); echo \"$x\" | {run}",
    "f() {{ {run}; }}; f <<'E'\n{text}\nE",
    "{{ cat; }} <<'E' | {run}\n{text}\nE",
    "cat > «new:1» <<'E'\n{text}\nE\n{run} < «new:1»",
    "tee «new:1» <<'E' | cat | {run}\n{text}\nE",
    "(echo : && cat) <<'E' | {run}\n{text}\nE",
    "if true; then {run}; fi <<'E'\n{text}\nE",
)
_FED_TO: Final = (
    "bash",
    "sh",
    "bash -s x",
    "bash /dev/stdin",
    "source /dev/stdin",
    "xargs -I{} sh -c {}",
    "perl",
)
_LINES: Final = (
    "touch «fresh»",
    "rm «plain»",
    "echo x > «fresh»",
    "cp «plain» «fresh»; rm -f «plain»",
    "unlink '«plain»'",
)
FED: Final = tuple(
    form.format(run=run, text=text) for form in _FED for run in _FED_TO for text in _LINES
)

# Lists of names that are made at run time, and what is done with them.
_MADE: Final = (
    "ls *.txt | xargs {do}",
    "for f in $(ls *.txt); do {do} $f; done",
    'ls *.txt | while read -r f; do {do} "$f"; done',
    'while read -r f; do {do} "$f"; done < <(ls src/*)',
    'while read -r f; do {do} "$f"; done < names.txt',
    'mapfile -t a < names.txt; {do} "${{a[@]}}"',
    "d=$(cd docs && pwd); {do} $d/guide.md",
    "d=$(dirname docs/guide.md); {do} $d/guide.md",
    "echo «plain» > «new:1»; xargs -a «new:1» {do}",
    "printf '%s\\n' «plain» «plain» > «new:1»; {do} $(cat «new:1»)",
    "echo «plain» | tee «new:1»; xargs {do} < «new:1»",
    "find . -maxdepth 1 -name '*.txt' -exec {do} {{}} +",
    "find docs -type f | head -1 | xargs {do}",
    'a=( $(ls docs) ); cd docs; {do} "${{a[0]}}"',
    'set -- $(ls *.md); {do} "$1"',
    'f() {{ {do} "$@"; }}; f $(ls *.md)',
    "x=$(ls *.md); x=${{x%z}}; {do} $x",
    "{do} $(if true; then echo «plain»; else echo list.txt; fi)",
    "{do} $(test -f «plain» && echo «plain»)",
    "{do} $(echo «plain»; echo «plain»)",
    "{do} $(echo «plain» | cat | cat)",
)
_DONE: Final = ("rm -f", "touch", "truncate -s 1", "sed -i s/e/E/", "tee -a", "shred")
MADE: Final = tuple(form.format(do=do) for form in _MADE for do in _DONE)

# Scripts that are written and run in one call.
_WRITTEN: Final = (
    "cat > {name} <<'E'\n{text}\nE\n",
    "cat > {name} <<E\n{text}\nE\n",
    "echo '{text}' > {name}; ",
    "printf '%s\\n' '#!/bin/sh' '{text}' > {name}; ",
    "echo '#!/bin/sh' > {name}; echo '{text}' >> {name}; ",
    "echo '{text}' | tee {name} >/dev/null; ",
    "{{ echo true; echo '{text}'; }} > {name}; ",
    "echo '{text}' > a0; cp a0 {name}; ",
    "echo '{text}' > a0 && mv a0 {name} && ",
    "if true; then echo '{text}' > {name}; fi; ",
    "x='{text}'; cat > {name} <<E\n$x\nE\n",
    "echo x > {name}; sed -i 's|x|{text}|' {name}; ",
    "f() {{ cat > $1; }}; f {name} <<'E'\n{text}\nE\n",
    "exec 4> {name}; echo '{text}' >&4; exec 4>&-; ",
)
_STARTED: Final = (
    "bash {name}",
    "sh ./{name}",
    "chmod +x {name} && ./{name}",
    "source ./{name}",
    ". ./{name} x y",
    "bash < {name}",
    "cat {name} | bash",
    'bash -c "$(cat {name})"',
    'eval "$(<{name})"',
    "for i in 1 2; do bash {name}; done",
    "nohup bash {name} >/dev/null",
    "cd docs; bash ../{name}",
    "bash *.sh",
)
SCRIPTS: Final = tuple(
    written.format(name="go.sh", text=text) + started.format(name="go.sh")
    for written in _WRITTEN
    for started in _STARTED
    for text in _LINES[:3]
)

# What a command prints, or a file holds, where it would be easy to be wrong about it.
KEPT: Final = (
    *(
        f"{written}; {used}"
        for written in (
            "if [ -f missing ]; then echo docs/guide.md > names.txt; fi",
            "false && echo docs/guide.md > names.txt",
            "true || echo docs/guide.md > names.txt",
            "for x in $(true); do echo docs/guide.md > names.txt; done",
            "f() { echo docs/guide.md > names.txt; }",
            "echo docs/guide.md > names.txt",
            "(exit; echo docs/guide.md > names.txt)",
            "(set -e; false; echo docs/guide.md > names.txt)",
            "(if true; then exit; fi; echo docs/guide.md > names.txt)",
            "(: $((1/0)); echo docs/guide.md > names.txt)",
            "(: ${missing:?}; echo docs/guide.md > names.txt) 2>/dev/null",
            "f() { return; echo docs/guide.md > names.txt; }; f",
            "while true; do break; echo docs/guide.md > names.txt; done",
            "(set -C; echo docs/guide.md > names.txt) 2>/dev/null",
            "chmod a-w names.txt; echo docs/guide.md > names.txt",
            "echo docs/guide.md >&2 > names.txt",
            "echo docs/guide.md > names.txt >&2",
            "exec 3> names.txt; echo todo.txt >&3; exec 3>&-",
            "ln names.txt other.txt; echo docs/guide.md > other.txt",
            "ln -s names.txt other.txt; echo docs/guide.md > other.txt",
            "echo docs/guide.md | tee names.txt",
            "rm names.txt; ln -s list.txt names.txt; echo docs/guide.md > names.txt",
            "echo docs/guide.md > names.txt; sed -i s/docs/src/ names.txt",
            "echo src/app.py > a; cp a names.txt; echo docs/guide.md > a",
            "echo src/app.py > a; mv a names.txt",
            "{ echo src/app.py; echo todo.txt; } > names.txt",
            "(cd docs; echo src/app.py > names.txt)",
            "echo src/app.py > names.txt &",
        )
        for used in (
            "xargs rm -f < names.txt",
            "rm -f $(cat names.txt)",
            "while read -r x; do rm -f $x; done < names.txt",
            "xargs -a names.txt touch",
        )
    ),
    *(
        f"x=$({printed}); touch ${{x}}«name»"
        for printed in (
            "echo docs/ >&-",
            "echo docs/ >&2",
            "echo docs/ 1>&2",
            "echo docs/ > /dev/null",
            "echo docs/ > /dev/stdout",
            "cd missing 2>&1; echo docs/",
            "exec >/dev/null; echo docs/",
            "exec true; echo docs/",
            "trap 'echo docs/' EXIT",
            "echo docs/ &",
            "echo docs/ | true",
            "! echo docs/",
            "time echo docs/",
            "echo docs/ | tee «new»",
            "echo docs/ |& cat",
            "set -e; false; echo docs/",
            "set -u; : $missing; echo docs/",
            "if true; then exit; fi; echo docs/",
            "f() { exit; }; f; echo docs/",
            "f() { return; echo docs/; }; f",
            "f() { echo docs/; }; f",
            "f() { echo docs/; }; f > «new»",
            "false || exit; echo docs/",
            "while true; do break; echo docs/; done",
            "echo src >/dev/null; echo docs/",
            "if false; then echo src/; else echo docs/; fi",
            "case a in b) echo src/;; *) echo docs/;; esac",
            "test -f missing && echo docs/",
            "test -f list.txt && echo docs/",
            "for x in; do echo docs/; done",
            "for x in docs/; do echo $x; done",
            "readonly x=1; x=2; echo docs/",
            "echo docs/; read y",
            "{ read y; cat; } <<E\na\ndocs/\nE\n",
            "{ read y; echo docs/; } <<< a",
            "{ cat; cat; } <<< docs/",
            "{ echo a >&2; } 2>&1; echo docs/",
            "{ echo docs/ >&2; } 2>&1",
            "bash -c 'echo docs/'",
            "bash -ec 'false; echo docs/'",
            "cat <(echo docs/)",
            "cat - <<< docs/",
            "echo docs/ | cat -",
            "eval echo docs/",
            "command echo docs/",
            "cd docs && pwd",
            "cd missing && pwd",
            "cd docs; pwd",
            "cd - >/dev/null; echo docs/",
            "(echo docs/)",
            "(exit; echo docs/)",
            "echo -n docs/",
            "printf %s docs/",
            "printf '%s/' docs",
            "echo docs/ $missing",
            'echo "docs/$missing"',
            "echo docs/; echo",
        )
    ),
    "{ echo todo.txt >&2; } 2>&1 | xargs rm -f",
    "echo docs/guide.md > names.txt | xargs rm -f < names.txt",
    "{ read -r x; xargs rm -f; } < names.txt",
    "{ head -1 > /dev/null; xargs rm -f; } <<E\nlist.txt\ntodo.txt\nE",
    "echo 'touch «fresh»' > a; ln a b; echo 'rm list.txt' > b; bash a",
    "echo 'touch «fresh»' > a; rm a; bash a; «w»",
    "mkdir d; cp src/util.py d/json.py; echo 'import json' > d/x.py; python3 d/x.py",
    "mkdir d; echo 'open(\"«fresh»\", \"w\")' > d/json.py; echo 'import json' > d/x; python3 d/x",
    "echo true > a; printf '#!/usr/bin/perl\\nunlink \"list.txt\";\\n' > a; chmod +x a; ./a",
    "false && echo : > a; printf '#!/usr/bin/perl\\nunlink q(list.txt);\\n' > a; chmod +x a; ./a",
    "echo 'rm list.txt' > zdiff; source zdiff",
    "echo 'echo $0 > «fresh»' > a; bash a",
    "echo 'touch \"$0-«name»\"' > a; chmod +x a; ./a; bash a; source ./a",
    "echo 'cd docs' > a; source ./a; touch «name»",
    "echo 'cd docs' > a; bash a; touch «name»",
    "echo 'x=docs/' > a; . ./a; touch ${x}«name»",
    "echo 'x=docs/' > a; bash a; touch ${x}«name»",
    "echo 'exit; touch «fresh»' > a; source ./a; «w»",
    "echo 'touch $1' > a; set -- «fresh»; source ./a",
    "echo 'touch $1' > a; set -- «fresh»; source ./a «new»",
)
