"""What commands read, write, search and remove, by their words."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from hermes_ext import ToolCall
from hermes_ext.effects import Effects, Machine, effects_of
from hermes_ext.effects._commands import Knowledge, risky_variable, run_command
from hermes_ext.effects._record import Recorder
from hermes_ext.effects._shell import Reading
from hermes_ext.effects._words import ANYTHING, Hole, Word

_FILES = (
    "a.txt",
    "b.txt",
    "d/x",
    "d/y",
    "e/z",
    "data.json",
    "a.gz",
    "plain.zip",
    "t.tar",
    "db.sqlite",
)


def _made(folder: Path) -> Machine:
    for name in _FILES:
        path = folder / "w" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}")
    return Machine(cwd=folder / "w", homes=(str(folder / "h"),))


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """A directory `w` with some files, which nobody changes."""
    return _made(tmp_path_factory.mktemp("commands"))


@pytest.fixture
def own(tmp_path: Path) -> Machine:
    """One that a test may change."""
    return _made(tmp_path)


def _effects(command: str, machine: Machine) -> Effects:
    return effects_of(ToolCall("terminal", {"command": command}), machine=machine)


def _of_words(words: Sequence[Word], machine: Machine) -> Effects:
    recorder = Recorder(machine)
    run_command(words, Reading(recorder))
    return recorder.effects()


def _changes(effects: Effects, machine: Machine) -> set[str]:
    """`+a` is written, `+a/` with all below it, `-a` removed."""
    found = set()
    for change in effects.changes:
        sign = "-" if change.kind == "delete" else "+"
        name = os.path.relpath(change.path, machine.cwd)
        found.add(f"{sign}{name}{'/' if change.tree else ''}")
    return found


# A command, and what it changes: `+` written, `-` removed, `/` with all below.
_WRITES = {
    "touch a.txt n": "+a.txt +n",
    "touch -r a.txt n": "+n",
    "mkdir n": "+n",
    "mkdir -p n/m d/x": "+n +n/m",
    "rm a.txt": "-a.txt",
    "rm -rf d e": "-d/ -e/",
    "rm d -r": "-d/",
    "rm -- -r": "--r",
    "/bin/rm a.txt": "-a.txt",
    "rmdir -p d/n": "-d/n -d",
    "unlink a.txt": "-a.txt",
    "shred -u a.txt": "+a.txt -a.txt",
    "truncate -s 0 a.txt": "+a.txt",
    "chmod -x a.txt": "+a.txt",
    "chmod -R u+w d": "+d/",
    "chown me a.txt": "+a.txt",
    "tee n b.txt": "+n +b.txt",
    "tee -a n": "+n",
    "cp a.txt n": "+n",
    "cp a.txt d": "+d/a.txt",
    "cp -t d a.txt b.txt": "+d/a.txt +d/b.txt",
    "cp -T a.txt n": "+n",
    "cp -r d n": "+n/",
    "cp -r d e": "+e/d/",
    "cp -rT d e": "+e/",
    "cp -b a.txt b.txt": "+b.txt +./",
    "cp -l a.txt n": "+n +a.txt",
    "mv a.txt n": "-a.txt +n",
    "mv d n": "-d/ +n/",
    "mv a.txt b.txt d": "-a.txt -b.txt +d/a.txt +d/b.txt",
    "ln -s a.txt n": "+n",
    "ln -s a.txt d": "+d/a.txt",
    "ln a.txt n": "+a.txt +n",
    "install -D a.txt n/m": "+n +n/m -n/m",
    "dd if=a.txt of=n": "+n",
    "split a.txt d/part": "+d/",
    "sort -o n a.txt": "+n",
    "sort -uon a.txt": "+n",
    "uniq a.txt n": "+n",
    "xxd a.txt n": "+n",
    "tree -o n": "+n",
    "sed -i s/a/b/ a.txt": "+a.txt",
    "sed -Ei.bak -e s/a/b/ a.txt": "+a.txt +a.txt.bak",
    "sed --in-place=*.o 1d d/x": "+d/x +d/x.o",
    "sed -n 'w n' a.txt": "+n",
    "sed -n '/a/,/b/{s/x/y/gw n\n}' a.txt": "+n",
    "sed '1!{$!w n\n}' a.txt": "+n",
    "sed '1e touch n' a.txt": "+n",
    """awk '{print > "n"}' a.txt""": "+n",
    """awk '{print | "tee n"}' a.txt""": "+n",
    """awk 'BEGIN{system("rm a.txt")}'""": "-a.txt",
    """awk 'BEGIN{"touch n" | getline x}'""": "+n",
    "perl -pi -e 's/a/b/' a.txt": "+a.txt",
    "perl -i.bak -pe 's/a/b/' a.txt": "+a.txt +a.txt.bak",
    "tar cf n.tar d": "+n.tar",
    "tar -czf n.tgz -C d .": "+n.tgz",
    "tar xf t.tar": "+./",
    "tar xzf t.tar -C e": "+e/",
    "tar -x --file=t.tar --directory e": "+e/",
    "tar cf n.tar --remove-files d": "+n.tar -d/",
    "unzip -o plain.zip -d e": "+e/",
    "zip -r n d": "+n +n.zip",
    "zip -m n.zip a.txt": "+n.zip -a.txt/",
    "gzip a.txt": "+a.txt.gz -a.txt",
    "gzip -k a.txt": "+a.txt.gz",
    "gunzip a.gz": "+a -a.gz",
    "xz b.txt": "+b.txt.xz -b.txt",
    "rsync -a d/ e": "+e/ -e/",
    "curl -so n https://example.com": "+n",
    "curl https://example.com/n.tgz -O": "+n.tgz",
    "curl -D n https://example.com -o /dev/null": "+n",
    "wget -qO n https://example.com": "+n",
    "find d -delete": "-d/",
    "find d -name x -exec rm {} +": "-d/",
    "find d -exec sed -i s/a/b/ {} \\;": "+d/",
    "find . -fprint n": "+n",
    "find d -type f -exec sh -c 'echo > n' \\;": "+n",
    "echo n m | xargs touch": "+n +m",
    "echo n | xargs -I{} cp a.txt {}": "+n",
    "printf 'n\\nm' | xargs -d '\\n' touch": "+n +m",
    "echo 1 2 | xargs -n1 touch": "+1 +2",
    "env TZ=UTC rm a.txt": "-a.txt",
    "env -C d rm x": "-d/x",
    "env -S 'rm a.txt'": "-a.txt",
    "sudo -u me rm a.txt": "-a.txt",
    "nice -n 5 timeout -k 1 5 rm a.txt": "-a.txt",
    "stdbuf -oL tee n": "+n",
    "time rm a.txt": "-a.txt",
    "busybox rm a.txt": "-a.txt",
    "flock n rm a.txt": "+n -a.txt",
    "watch -n 1 'rm a.txt'": "-a.txt",
    "sh -c 'rm a.txt'": "-a.txt",
    "bash -lc 'rm a.txt'": "-a.txt",
    "bash -c 'rm \"$1\"' _ a.txt": "-a.txt",
    "echo rm a.txt | sh": "-a.txt",
    "zsh -c 'rm a.txt'": "-a.txt",
    "python3 -m json.tool data.json n": "+n",
    "python3 -m tarfile -c n.tar d": "+n.tar",
    "jaq -i .a data.json": "+data.json",
    "patch a.txt p.diff": "+a.txt -a.txt +a.txt.orig +a.txt.rej",
    "sqlite3 n.db .tables": "+n.db",
    "openssl dgst -out n a.txt": "+n",
    "mktemp -p d": "+d/",
    "pip --log n list": "+n",
    "docker compose config -o n": "+n",
}


@pytest.mark.parametrize("command", _WRITES)
def test_what_is_written_is_known_exactly(machine: Machine, command: str) -> None:
    """These commands touch what is listed, and nothing else."""
    effects = _effects(command, machine)
    assert _changes(effects, machine) == set(_WRITES[command].split())
    assert effects.exact, effects.unknown


_UNKNOWN = """
make
./rm a.txt
/tmp/cat a.txt
nobody-knows-this
sort --compress-program=x a.txt
cp --frobnicate a.txt n
rg --pre ./x foo
man -P ./x ls
less +'!touch n' a.txt
sed -f s.sed a.txt
sed s/a/b/e a.txt
sed e a.txt
sed 's/[/]/x/w n' a.txt
awk -f p.awk a.txt
awk '{print > $1}' a.txt
awk '{print | $1}' a.txt
gawk -i inplace '{print}' a.txt
gawk '@load "x"' a.txt
perl -e 'unlink "a.txt"'
perl -ne print 'x|'
perl -ie print a.txt
perl -pe 's/(?{system "x"})//' a.txt
perl -pe 's/a/`x`/e' a.txt
ruby -e 'File.delete "a.txt"'
node -p "require('./x').y"
node -e "process.binding('fs')"
python3 x.py
python3 -m nobody
python3 -im json.tool
bash x.sh
bash -O extglob -c 'ls'
sh -c "rm {a,b}.txt"
zsh -c 'print *(e:x:)'
cat a.txt | sh
vim a.txt
npm run build
npx eslint .
cargo build
git nobody
git -c core.pager=./x log
git -c alias.x='!rm a.txt' x
git --exec-path=. log
git grep -O./x a
git clone ext::x n
git config alias.x '!rm a.txt'
git rebase -x ./x main
git submodule foreach ls
tar xf t.tar -P
tar xf t.tar -I ./x
tar xf t.tar --checkpoint-action=exec=./x
tar cf n.tar -T names
tar tf host:t.tar
unzip -: plain.zip
unzip -l --l plain.zip
zip -T -TT ./x n.zip a.txt
curl -K x https://example.com
curl -o '#1' 'https://example.com/{a,b}'
rsync -a d host:/x
rsync -e ./x d e
find . -exec ./x {} \\;
find . -okdir ./x {} +
find . -nobody
find -files0-from x -delete
fd . -x ./x
xargs rm < a.txt
ls | xargs -I{} rm {}
sed 's/[^]/]/g;p;#/w n' a.txt
sed 's/[[:alpha:]/]/g;p;#/w n' a.txt
awk '/[/] {print > "n"} #]/' a.txt
less -N+'!touch n' a.txt
curl -w '%output{n}x' https://example.com
curl -T a.txt file:///tmp/n
psql -c "select lo_export/**/(1, 'n')"
sqlite3 db.sqlite 'select 1' -cmd '.shell rm a.txt'
python3 -m tarfile -e t.tar e
mv --exchange a.txt b.txt
hg log --config alias.log='!rm a.txt'
pip list --python ./x
uv pip list --python ./x
poetry -C d show
cargo tree --conf build.rustc=./x
bundle check --gemfile=x
terraform -chdir=d show
pytest --version
ldd ./x
arch -x86_64 rm a.txt
hostnamectl set-hostname x
sysctl kernel.x=1
git log --ext-diff
parallel rm ::: a.txt
ssh host rm a.txt
env -i ./x
env -u A ./x
sudo -e a.txt
sudo -i
[ -v 'a[$(rm a.txt)]' ]
jobs -x rm a.txt
patch -p1 < p.diff
sqlite3 db.sqlite 'delete from x'
sqlite3 db.sqlite "select writefile('n', 'x')"
sqlite3 db.sqlite '.shell rm a.txt'
psql -c '\\! rm a.txt'
aws s3api get-object --bucket b --key k n
docker run x
kubectl exec p -- rm x
pip install x
ip netns exec x rm a.txt
hermes-ext trust
""".strip().splitlines()


@pytest.mark.parametrize("command", _UNKNOWN)
def test_what_is_not_understood_may_write(machine: Machine, command: str) -> None:
    """A program, option or operand that decides and is not known makes the call inexact."""
    effects = _effects(command, machine)
    assert effects.may_write
    assert not effects.exact


_READ_ONLY = """
cat a.txt
/usr/bin/cat a.txt
sort -t o -k 1 a.txt
sed -n '/a/,/b/p;$!d' a.txt
sed 'a\\
w x' a.txt
sed "y/w/e/;s/w /x/" a.txt
sed 's#a#b#g; /x/!s/y/z/2' a.txt
awk '$1 > 3 && /a\\/b/ {n++} END {print (n > 2) ? "a>b" : n}' a.txt
awk -F'|' '{print $1 " | " $2}' a.txt
awk 'BEGIN{while ((getline l < "a.txt") > 0) print l > "/dev/stderr"}'
awk '{ if ($1 / 2 > 3) print; x = y ~ /[>]/ }' a.txt
perl -ne 'print if /^a.*$/i' a.txt
perl -lane 'print $F[0]' a.txt
node -p "require('./data.json').version"
find . \\( -name '*.py' -o -newermt 2020-01-01 \\) -not -path './d/*' -printf '%p\\n'
find . -type f -exec grep -l x {} +
fd -e py . d
tar tzvf t.tar
unzip -l plain.zip
gzip -dc a.gz
curl -sS -X POST -d @a.txt -o /dev/null -w '%{http_code}' https://example.com
wget -qO- https://example.com
rsync -an d/ e
git -c color.ui=never -C d log -p
git -c core.pager=cat branch --list 'x*'
python3 -m json.tool data.json
python3 -m pip list
sqlite3 db.sqlite 'select count(*) from x'
timeout 5 ls
env
env LANG=C sort a.txt
LC_ALL=C NO_COLOR=1 GIT_PAGER=cat git log
xargs -a a.txt grep x
rm --help
docker compose -f x.yml logs web
kubectl get pods -o yaml
npm run
crontab -l
type ls
openssl x509 -in a.txt -noout -text
aws ec2 describe-instances --region x
[ "$(cat a.txt)" = x ]
""".strip()


def _texts(block: str) -> list[str]:
    return block.replace("\\\nw x", "\\\0w x").splitlines()


@pytest.mark.parametrize("command", [each.replace("\0", "\n") for each in _texts(_READ_ONLY)])
def test_what_only_reads_is_seen_to(machine: Machine, command: str) -> None:
    """These commands change nothing, though others of their name do."""
    effects = _effects(command, machine)
    assert not effects.may_write, (effects.unknown, effects.changes)


@pytest.mark.parametrize(
    ("command", "reads", "searches"),
    [
        ("grep x a.txt d/x", "a.txt d/x", ""),
        ("grep -e x a.txt", "a.txt", ""),
        ("grep -f a.txt b.txt", "a.txt b.txt", ""),
        ("grep -rn x d", "d", "d"),
        ("grep -r x", ".", "."),
        ("rg x", ".", "."),
        ("rg --files d", "d", "d"),
        ("rg -g '*.py' x d", "d", "d"),
        ("ls", ".", ""),
        ("ls -R d", "d", "d"),
        ("head -n 5 a.txt", "a.txt", ""),
        ("head -5 a.txt", "a.txt", ""),
        ("sed -n 1p a.txt", "a.txt", ""),
        ("awk -v n=1 '{print}' x=1 a.txt", "a.txt", ""),
        ("find d -name x", "d", "d"),
        ("find", ".", "."),
        ("find d -maxdepth 1", "d", ""),
        ("find d -maxdepth 1 -maxdepth 2", "d", "d"),
        ("find d -exec echo -maxdepth 1 ';'", "d", "d"),
        ("find d -maxdepth 1 -exec cat {} +", "d d/x d/y", ""),
        ("tree -L1 d", "d", ""),
        ("tree -L 2 d", "d", "d"),
        ("ug x d", "d", "d"),
        ("echo d/**/*.py", "d", "d"),
        ("echo '**/*'", "", ""),
        ("cp a.txt n", "a.txt", ""),
        ("cp -r d n", "d", "d"),
        ("jq --arg a b --slurpfile c a.txt . data.json", "a.txt data.json", ""),
        ("tar cf n.tar d", "d", "d"),
        ("tar xf t.tar", "t.tar", ""),
        ("diff -r d e", "d e", "d e"),
        ("curl -s file:///etc/passwd", "/etc/passwd", ""),
        ("curl -d @a.txt -F x=@b.txt -T d/x http://example.com", "a.txt b.txt d/x", ""),
        ("""awk 'BEGIN{while((getline l < "a.txt") > 0) print l}'""", "a.txt", ""),
        ("sed 'r b.txt' a.txt", "a.txt b.txt", ""),
        ("sudo cat a.txt", "a.txt", ""),
        ("dd if=a.txt", "a.txt", ""),
        ("cat - a.txt", "a.txt", ""),
    ],
)
def test_what_is_read(machine: Machine, command: str, reads: str, searches: str) -> None:
    """Files that are read are told from directories that are searched, and from other words."""
    assert machine.cwd is not None
    effects = _effects(command, machine)
    assert effects.reads == {Path(os.path.normpath(machine.cwd / each)) for each in reads.split()}
    wanted = {Path(os.path.normpath(machine.cwd / each)) for each in searches.split()}
    assert effects.searches == wanted


@pytest.mark.parametrize(
    "words",
    [
        ["cat", Hole()],
        ["wc", "-l", ANYTHING],
        ["grep", "-r", Hole(), ANYTHING],
        ["sort", Hole("./")],
        ["sort", "--", Hole()],
        ["git", "log", Hole("main..")],
        ["cp", "--", "a.txt", "b.txt"],
        ["echo", ANYTHING],
        ["docker", "logs", Hole()],
        ["find", ".", "-name", Hole()],
        ["dd", Hole("if=")],
    ],
    ids=str,
)
def test_words_that_are_not_known_do_no_harm_here(machine: Machine, words: list[Word]) -> None:
    """A command without a harmful option takes any word; others take those that are no option."""
    assert _of_words(words, machine).exact


@pytest.mark.parametrize(
    "words",
    [
        ["sort", Hole()],
        ["sort", "a.txt", ANYTHING],
        ["git", "log", Hole()],
        ["git", Hole()],
        ["rg", ANYTHING],
        ["touch", Hole("x")],
        ["rm", "-r", ANYTHING],
        ["cp", "a.txt", Hole()],
        ["find", Hole(), "-print"],
        ["find", ".", Hole("-name")],
        ["find", ".", "-name", ANYTHING],
        ["sed", Hole("s/a/"), "a.txt"],
        ["awk", Hole(), "a.txt"],
        ["tar", Hole("x"), "t.tar"],
        ["sudo", ANYTHING],
        ["env", Hole()],
        ["sh", "-c", Hole()],
        ["sh", Hole()],
        ["python3", "-c", Hole()],
        ["python3", Hole()],
        ["curl", Hole()],
        ["npm", Hole()],
        ["dd", Hole()],
        ["less", Hole()],
        ["uniq", "a.txt", ANYTHING],
        ["[", ANYTHING, "]"],
        ["perl", "-ne", "print", Hole()],
        ["sqlite3", "db.sqlite", Hole()],
    ],
    ids=str,
)
def test_words_that_are_not_known_may_do_harm(machine: Machine, words: list[Word]) -> None:
    """Where a word decides what a command does and is not known, the command may write."""
    assert not _of_words(words, machine).exact


def test_a_source_that_is_not_known_stays_below_its_destination(machine: Machine) -> None:
    """`cp -- $x d` writes below `d`, whatever `$x` is."""
    effects = _of_words(["cp", "--", Hole(), "d"], machine)
    assert effects.exact
    assert "+d/" in _changes(effects, machine)


def test_find_deletes_what_has_the_name(own: Machine) -> None:
    """With a name, `find -delete` deletes those files; where the name may mean more, all."""
    assert own.cwd is not None
    (own.cwd / "e" / "sub").mkdir()
    (own.cwd / "e" / "sub" / "one.pyc").touch()
    (own.cwd / "e" / "two.py").touch()
    assert _changes(_effects("find e -type f -name '*.pyc' -delete", own), own) == {
        "-e/sub/one.pyc"
    }
    assert not _effects("find e -name '*.o' -delete", own).may_write
    for command in (
        "find e -delete -name '*.pyc'",
        "find e -name '*' -delete",
        "find e ! -name '*.pyc' -delete",
        "find e -name a -o -name b -delete",
        "find e -name '[^a]*' -delete",
        "cp -r d e; find e -name '*.pyc' -delete",
    ):
        found = _effects(command, own)
        assert any(each.tree and each.kind == "delete" for each in found.changes), command


def test_links_below_a_tree_make_it_unknown(own: Machine) -> None:
    """Copying into a tree writes through the links in it."""
    assert own.cwd is not None
    (own.cwd / "e" / "d").mkdir()
    (own.cwd / "e" / "d" / "x").symlink_to(own.cwd.parent / "secret")
    assert not _effects("cp -r d e", own).exact
    assert not _effects("find e -exec touch {} +", own).exact


@pytest.mark.parametrize(
    ("command", "links"),
    [
        ("ln -s a.txt n", {"n"}),
        ("cp -s a.txt n", {"n"}),
        ("cp -P l n", {"n"}),
        ("cp l n", set()),
        ("cp -P a.txt n", set()),
        ("mv l n", {"n"}),
        ("mv a.txt n", set()),
        ("tar xf t.tar -C d", {"d"}),
        ("python3 -c \"import shutil; shutil.copy('l', 'n', follow_symlinks=False)\"", {"n"}),
        ("python3 -c \"import shutil; shutil.copy('l', 'n', follow_symlinks=True)\"", set()),
    ],
)
def test_what_may_become_a_link_is_told(own: Machine, command: str, links: set[str]) -> None:
    assert own.cwd is not None
    (own.cwd / "l").symlink_to("a.txt")
    effects = _effects(command, own)
    assert {each.path.name for each in effects.changes if each.link} == links


def test_a_link_that_code_copied_leads_on(own: Machine) -> None:
    """What is written through the copy is not the file that it seems to be."""
    assert own.cwd is not None
    (own.cwd / "l").symlink_to("a.txt")
    code = "import shutil\nshutil.copy('l', 'n', follow_symlinks={})\nopen('n', 'w')"
    for follows in ("True", "False"):
        effects = effects_of(ToolCall("execute_code", {"code": code.format(follows)}), machine=own)
        assert effects.exact is (follows == "True")


def test_a_link_that_was_made_leads_on(machine: Machine) -> None:
    """What is later written to a link's name is written to its target."""
    effects = _effects("ln -s ../secret n; echo x > n", machine)
    assert "+../secret" in _changes(effects, machine)


def test_python_modules_of_the_directory_come_first(own: Machine) -> None:
    """`python -m json.tool` runs `argparse.py` of the directory, unless `-P` is given."""
    assert own.cwd is not None
    (own.cwd / "argparse.py").touch()
    assert not _effects("python3 -m json.tool data.json", own).exact
    assert _effects("python3 -P -m json.tool data.json", own).exact


@pytest.mark.parametrize(
    "words", ["-fplans/x.md", "-qfplans/x.md", "-f./plans/x.md", "@plans/x.md", "--file=plans/x.md"]
)
def test_a_path_behind_letters_of_options_is_mentioned(own: Machine, words: str) -> None:
    """A program that nobody knows may mean it."""
    assert own.cwd is not None
    assert own.cwd / "plans/x.md" in _effects(f"nobody {words}", own).mentions


def test_settings_files_may_change_what_a_program_does(own: Machine) -> None:
    """`cargo tree` runs what `.cargo/config.toml` says, in the directory or above it."""
    assert own.cwd is not None
    assert _effects("cargo tree --locked", own).exact
    (own.cwd.parent / ".cargo").mkdir()
    (own.cwd.parent / ".cargo/config.toml").touch()
    assert not _effects("cargo tree --locked", own).exact


def test_machines_elsewhere_are_not_looked_at(machine: Machine) -> None:
    """What depends on files that cannot be seen from here may write."""
    there = Machine(cwd=Path("/w"), homes=("/h",), local=False)
    assert not _effects("git status", there).exact
    assert not _effects("cargo tree", there).exact
    assert _effects("grep -rn x .", there).exact
    assert {str(each) for each in _effects("cp a b", there).writes} == {"/w/b", "/w/b/a"}


@pytest.mark.parametrize(
    ("name", "value", "risky"),
    [
        ("PATH", "/x", True),
        ("LD_PRELOAD", "x", True),
        ("GIT_DIR", "x", True),
        ("GIT_PAGER", "cat", False),
        ("PAGER", "less", False),
        ("PAGER", "./x", True),
        ("MANPAGER", Hole(), True),
        ("EDITOR", "true", False),
        ("VISUAL", "./x", True),
        ("PYTHONPATH", ".", True),
        ("PYTHONUNBUFFERED", "1", False),
        ("NODE_OPTIONS", "x", True),
        ("http_proxy", "x", False),
        ("LANG", "C", False),
        ("LC_ALL", "C", False),
        ("TZ", "UTC", False),
        ("CI", "1", False),
        ("GIT_AUTHOR_NAME", Hole(), False),
        ("TZ", Hole(), True),
        ("LC_ALL", "../x", True),
        ("MY_OWN", "1", True),
    ],
)
def test_variables_that_change_nothing_are_listed(name: str, value: Word, risky: bool) -> None:
    """What a command is given decides what it runs or loads, but for a few harmless variables."""
    assert risky_variable(name, value) is risky


@pytest.mark.parametrize("command", ["rm a.txt", "sed -i 1d a.txt", "find d -delete", "git add ."])
def test_each_command_that_writes_is_a_rule(machine: Machine, command: str) -> None:
    """Without the rule of its name, a command announces nothing."""
    recorder = Recorder(machine, skip={f"command:{command.split(maxsplit=1)[0]}"})
    run_command(command.split(), Reading(recorder))
    assert not recorder.effects().may_write
    assert _effects(command, machine).may_write


def test_users_add_commands(machine: Machine) -> None:
    """What users say of a command is added to what is known, or replaces it."""
    knowledge = Knowledge.bundled().extended(
        {
            "deploy": {"options": {"-o --out": "write"}, "operands": "read", "others": "flag"},
            "make": {"subcommands": {"check": {}}},
            "git": {"subcommands": {"standup": {}}},
            "sort": {"options": {"--output": "text"}},
            "cat": {"replace": True, "operands": "delete"},
        }
    )
    own = Machine(cwd=machine.cwd, homes=machine.homes, commands=knowledge)
    assert _changes(_effects("deploy -xo n a.txt", own), own) == {"+n"}
    assert _effects("make check", own).exact
    assert not _effects("make install", own).exact
    assert _effects("git standup", own).exact
    assert _effects("git status", own).exact
    assert _effects("sort --output x a.txt", own).exact
    assert _changes(_effects("sort -o n a.txt", own), own) == {"+n"}
    assert _changes(_effects("cat a.txt", own), own) == {"-a.txt"}
    assert not _effects("deploy x", machine).exact
