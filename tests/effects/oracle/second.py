"""Templates for text that is read a second time: values, input, lists of names, scripts."""

from __future__ import annotations

from typing import Final

__all__ = ["EVALUATED"]

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
