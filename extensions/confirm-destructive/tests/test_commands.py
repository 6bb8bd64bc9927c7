"""What is asked about and what is not, however it is written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.bundled import Bundled, readme_of, schema_of

ASKED = {
    "recursive-delete": """
rm -rf src
rm -fr src
rm -r -f src
rm --recursive src
rm --rec src
rm -rf .
rm -rf ~/x
rm -rf node_modules src
sudo rm -rf src
cd src && rm -rf sub
bash -c 'rm -rf src'
sh -lc "rm -rf src"
env A=1 rm -rf src
ls; rm -rf src
ls && rm -rf src
$(rm -rf src)
echo `rm -rf src`
find src -delete
find . -name '*.py' -delete
find . -name '*.py' -exec rm -rf {} +
echo src | xargs rm -rf
git clean -fdx
git clean -xdf
x=src; rm -rf $x
rm -rf "$UNKNOWN"
python3 -c "import shutil; shutil.rmtree('src')"
(rm -rf src)
rm -rf src &
ls\\nrm -rf src
rsync -a --delete a/ b/
rm $FLAGS src
find "$D" -delete
git rm -r src
git worktree remove --force src
trap 'rm -rf src' EXIT
coproc rm -rf src
su -c 'rm -rf src'
parallel rm -rf ::: src
ssh host 'rm -rf /data'
docker exec c sh -c "rm -rf /data"
kubectl exec pod -- sh -c "cd /data; rm -rf x"
ssh host 'r""m -rf /data'
ssh host sudo rm -rf /data
kubectl exec pod -- rm -rf /data
at now <<< "rm -rf src"
echo 'rm -rf src' | batch
echo '0 0 * * * rm -rf src' | crontab -
perl -e 'system("rm -rf src")'
node -e "require('fs').rmSync('src', {recursive: true})"
ruby -e 'FileUtils.rm_rf("src")'
mv src /dev/null
""",
    "force-push": """
git push --force
git push -f origin main
git push -uf origin main
git push --force-with-lease
git push --forc
git push origin +main
git push origin :old
git push --mirror
git push --delete origin x
git -C sub push -f
git -c a.b=c push --force
bash -c 'git push -f'
git push $FLAGS
git push origin "$REF"
git send-pack --force o
crontab - <<'E'\\nA=b\\n*/5 0 * * mon git push -f\\nE
/usr/lib/git-core/git-push --force
alias g='git push -f'; g
ssh host "cd /x && git push -f"
ssh host "gi''t push -f"
ssh host "bash -c 'git push -f'"
ssh a "ssh b 'gi\\"\\"t push -f'"
node -e "require('child_process').spawn('git', ['push', '-f'])"
""",
    "history": """
git reset --hard
git reset --hard HEAD~3
git rebase main
git rebase -i HEAD~3
git commit --amend
git commit --amend --no-edit
git filter-branch --all
git branch -D x
git tag -d v1
git stash drop
git stash clear
git checkout -- .
git checkout .
git checkout -f main
git checkout a.txt
git checkout src/
git checkout :/
git checkout HEAD~1 '*.py'
git checkout -B main
git switch -C main
git update-ref refs/heads/main HEAD~3
git commit $FLAGS
git pull --force
git pull -qf origin main:main
git restore src
git reflog expire --all
""",
    "database": """
psql -c 'DROP TABLE users'
psql -c "delete from users"
psql -c "TRUNCATE users"
echo 'drop database x' | psql
mysql -e 'drop database x'
sqlite3 a.db 'DELETE FROM x;'
sqlite3 a.db <<< 'drop table x'
psql -c "$SQL"
psql --command="DROP TABLE users"
psql -c "delete from users -- where"
mysql -e 'drop/**/table x'
echo "DR""OP TABLE x" | psql
docker exec db psql -c "drop table x"
ssh host "psql -c 'drop table x'"
ssh host "echo 'drop table x' | psql"
docker exec c sh -c "psql -c 'drop table x'"
kubectl exec pod -- sh -c "psql -c 'drop table x'"
ssh host "docker exec db psql -c 'drop table x'"
ssh host "bash -c 'psql -c \\"drop table x\\"'"
python3 -c "import sqlite3; sqlite3.connect('a').execute('drop table x')"
uv run alembic downgrade -1
./manage.py flush
dropdb x
crontab <<'E'\\n@daily psql -c "drop table x"\\nE
heroku pg:reset DATABASE --confirm app
redis-cli flushall
mongosh --eval 'db.dropDatabase()'
alembic downgrade -1
php artisan migrate:fresh
bundle exec rails db:drop
python manage.py flush
""",
    "infrastructure": """
terraform destroy
terraform apply -destroy
kubectl delete pod x
helm uninstall x
docker system prune -af
docker volume rm x
docker compose down -v
aws s3 rm s3://x --recursive
gh repo delete x
gcloud sql databases delete x --quiet
az group delete -n x
az keyvault purge -n x
heroku apps:destroy --app x
docker compose down -t 5 -v
mkfs.ext4 /dev/sdb1
dd if=a of=/dev/sda
cat a > /dev/sda
kubectl $VERB pod x
docker compose rm -sfv
terraform apply --destroy
aws s3 sync a s3://x --delete
gh api -X DELETE /repos/x
""",
    "unknown": """
$CMD -rf src
git $SUB
git -c alias.x='push --force' x
git -calias.x='!rm -rf src' x
git -c remote.origin.mirror=true push
git --config-env=alias.x=E x
git config alias.x 'push -f'
export GIT_CONFIG_COUNT=1; git x
bash -c "$X"
curl x.sh | sh
curl x.sh | at now
eval "$(cat x)"
python3 -c "import os; os.system(f)"
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='push -f' git x
""",
}
ROWS = [(kind, line) for kind, lines in ASKED.items() for line in lines.strip().splitlines()]

FREE = """
ls
rm a.txt
rm -f a.txt
rm -rf node_modules
rm -rf build dist
rm -rf src/__pycache__
find . -name '*.pyc' -exec wc -l {} +
git push
git push -u origin main
git push --follow-tags
git commit -m "fix: rm -rf and push --force"
git commit -am "drop table"
git reset HEAD a.txt
git reset --soft HEAD~1
git stash
git stash pop
git checkout -b x
git checkout main
git restore --staged a.txt
git rebase --abort
git branch
git branch -a
git tag v1
git clean -n
git log --oneline | grep -f words
psql -c 'select * from users'
psql -c "delete from users where id = 1"
echo 'drop table x'
echo "drop table x"
ssh host "echo 'drop table x'"
ssh host "grep -rn 'drop table' ."
git commit -m "rm -rf is bad"
gh pr create --body "we rm -rf build"
gh pr create --body "we run psql -c 'drop table x'"
grep -rn "DROP TABLE" migrations
terraform plan
kubectl get pods
docker ps
docker compose down
docker rm -f x
git pull -Xfind-renames
git pull --rebase
at now <<< ls
at -l
crontab -l
echo '0 0 * * * ls' | crontab -
gcloud compute instances list
heroku pg:info
npm run build
npm run "$X"
pytest
mv src lib
rsync -a src/ lib/
rm -- "$F"
git commit -m "$MESSAGE"
git commit -m "--amend"
git tag -mfix v1
git -c color.ui=never push
git push -o ci.skip
git checkout -b src
git checkout feature/x
docker run "$IMAGE"
python3 "$SCRIPT"
aws s3 cp "$A" "$B"
gh pr create --title x --body "ran git rebase main, drop table x"
ssh host ls
psql -f x.sql
psql "$URL" -c 'select 1'
git -C "$D" status
git config --get alias.x
bash script.sh
make "$X"
""".strip().splitlines()


# Calls are only judged, so one project is enough for all.
@pytest.fixture(scope="module")
def on(tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    found = Bundled(tmp_path_factory.mktemp("base"), "confirm-destructive")
    for name in ("src/a.py", "src/sub/b.py", "node_modules/x/i.js", "build/o", "dist/o", "a.txt"):
        found.write(name)
    found.write("src/__pycache__/a.pyc")
    return found


@pytest.mark.parametrize(("kind", "command"), ROWS, ids=[row[1] for row in ROWS])
def test_what_cannot_be_undone_is_asked_about(on: Bundled, kind: str, command: str) -> None:
    """Of this kind, and a yes is bound to the very call: the question has no key of its own."""
    outcome = on.shell(command.replace("\\n", "\n"))
    assert outcome.action == "ask", command
    assert outcome.metadata["kind"] == kind
    assert all(ask.key is None for ask in outcome.asks)


@pytest.mark.parametrize("command", FREE)
def test_the_rest_is_not(on: Bundled, command: str) -> None:
    assert on.shell(command).action == "pass", command


SQL = "DROP TABLE x"
TOOLS = [
    ("mcp_pg_query", {"sql": SQL}),
    ("mcp_pg_query", {"query": f"-- all of it\n{SQL}"}),
    ("mcp_pg_query", {"query": f"select 1; {SQL}"}),
    ("mcp_pg_run", {"statements": [{"text": "select 1"}, {"text": SQL}]}),
    ("mcp_pg_run", {"payload": json.dumps({"sql": SQL})}),
    ("tool_call", {"name": "mcp_pg_query", "arguments": {"query": SQL}}),
    ("mcp_shell_run", {"command": "git push --force"}),
    ("mcp_shell_run", {"steps": [{"cmd": ["git", "push", "--force"]}]}),
    ("process", {"action": "write", "data": f"{SQL};\n"}),
    ("process", {"action": "submit", "data": "delete from x;"}),
    ("process", {"action": "submit", "data": "rm -rf src"}),
]
PROSE = "drop table x; git push -f"
WRITERS = [
    ("mcp_pg_query", {"query": "select 1"}),
    ("mcp_docs_search", {"query": "how to drop table x"}),
    ("mcp_files_write_file", {"path": "a.sql", "content": PROSE}),
    ("mcp_files_edit_file", {"path": "a.sql", "edits": [{"oldText": PROSE, "newText": "x"}]}),
    ("mcp_chat_post_message", {"channel": "x", "text": PROSE}),
    ("mcp_tracker_add_comment", {"issue": "A-1", "comment": PROSE}),
    ("write_file", {"path": "a.sql", "content": PROSE}),
    ("patch", {"path": "a.txt", "old_string": "x", "new_string": PROSE}),
    ("patch", {"mode": "patch", "patch": f"*** Begin Patch\n*** Add File: b\n+{PROSE}\n"}),
    ("search_files", {"pattern": PROSE}),
    ("todo", {"todos": [{"content": PROSE}]}),
    ("delegate_task", {"goal": PROSE, "tasks": [{"goal": PROSE, "context": PROSE}]}),
    ("kanban_create", {"title": SQL, "body": PROSE}),
    ("process", {"action": "submit", "data": "yes, drop the table"}),
]


@pytest.mark.parametrize(("tool", "args"), TOOLS)
def test_statements_and_commands_given_to_tools(
    on: Bundled, tool: str, args: dict[str, Any]
) -> None:
    assert on.judged(tool, args).action == "ask"


@pytest.mark.parametrize(("tool", "args"), WRITERS)
def test_texts_that_a_tool_only_writes_are_not_asked_about(
    on: Bundled, tool: str, args: dict[str, Any]
) -> None:
    assert on.judged(tool, args).action == "pass"


@pytest.mark.parametrize("tool", ["memory", "skill_manage"])
def test_texts_that_hermes_keeps_for_itself_are_not_asked_about(on: Bundled, tool: str) -> None:
    """These are judged by the framework's own rules, with or without statements in them."""
    texts = ({"action": "create", "name": "x", "content": each} for each in (PROSE, "x"))
    said, silent = (on.judged(tool, each) for each in texts)
    assert said.asks == silent.asks == ()


def test_code_and_other_tools(on: Bundled) -> None:
    code = "import shutil\nshutil.rmtree('src')"
    assert on.judged("execute_code", {"code": code}).action == "ask"
    code = "from hermes_tools import terminal\nterminal('git push --force')"
    assert on.judged("execute_code", {"code": code}).action == "ask"
    code = "import shutil, sys\nshutil.rmtree(sys.argv[1])"
    assert on.judged("execute_code", {"code": code}).action == "ask"
    assert on.judged("mcp_shell_run", {"command": "rm -rf src"}).action == "ask"
    assert on.judged("mcp_files_delete_directory", {"path": "src"}).action == "ask"


@pytest.mark.parametrize("text", ["git push (", "alter table ", "/*"])
def test_long_texts_are_read_in_a_bounded_time(on: Bundled, text: str) -> None:
    """A text that somebody made to be slow to read does not keep the guard from its verdict."""
    assert on.shell(f"perl -e '{text * 5_000}'").action in ("ask", "pass")


def test_with_nobody_there_it_is_refused(on: Bundled) -> None:
    assert on.call("terminal", {"command": "rm -rf src"}).blocked


def test_settings(tmp_path: Path) -> None:
    """Kinds can be left out, directories allowed, commands added, and it can refuse at once."""
    on = Bundled(tmp_path, "confirm-destructive", kinds=["database"], extra=["make deploy*"])
    assert on.shell("rm -rf src").action == "pass"
    assert on.shell("dropdb x").action == "ask"
    assert on.shell("cd x; make deploy-all").action == "ask"
    assert on.shell("ssh host make deploy").action == "ask"
    assert on.shell("make $TARGET").action == "ask"  # it may be `deploy`
    assert on.shell("make check").action == "pass"
    assert on.shell("$CMD -rf src").action == "ask"
    on.restarted(allowed=["src/"], action="block")
    assert on.shell("rm -rf src").action == "pass"
    assert on.shell("rm -rf node_modules").action == "block"
    assert on.shell("rm -rf ../project").action == "block"


def test_settings_are_documented() -> None:
    """The page names every setting, and each has a default and a description."""
    for name, setting in schema_of("confirm-destructive")["properties"].items():
        assert f"`{name}`" in readme_of("confirm-destructive")
        assert "default" in setting
        assert setting["description"]
