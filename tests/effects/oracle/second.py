"""Templates for text that is read a second time: values, input, lists of names, scripts."""

from __future__ import annotations

from typing import Final

__all__ = ["EVALUATED", "FED", "MADE", "SCRIPTS"]

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
