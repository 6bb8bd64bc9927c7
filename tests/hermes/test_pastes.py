"""What a person pastes at the command line is kept in no file once a rule has withheld it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome
from tests.harness.terminal import ENTER
from tests.hermes.stage import HEAD, play
from tests.hermes.test_ask_terminal import READY, chat
from tests.hermes.words import give_words

from hermes_ext.testing import ModelRequest, Reply, ScriptedModel

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

SECRET = "hunter2"
RULES = """
@register_hook('transform_user_input')
def rules(user_message):
    if 'forbidden' in user_message:
        return HookResult.block('no')
    return HookResult.rewrite(user_message.replace('hunter2', '***') + ' please')
"""
LONG = "".join(f"line {n}\n" for n in range(8))


def test_the_files_of_pastes(hermes: HomeFactory) -> None:
    """The file of a withheld or rewritten paste gets a note; any other file stays as it is."""
    home = hermes()
    home.extension("rules", HEAD + RULES)
    facts = play(
        home,
        f"""
        LONG = {LONG!r}
        folder = Path(os.environ['HERMES_HOME'], 'pastes')
        folder.mkdir(exist_ok=True)
        files = {{
            'paste_1_1.txt': 'forbidden\\n' + LONG,
            'paste_2_2.txt': 'hunter2\\r\\n' + LONG.replace('\\n', '\\r\\n'),
            'paste_3_3.txt': 'fine\\n' + LONG,
            'paste_4_4.txt': 'hunter2, never sent\\n' + LONG,
            'notes.txt': 'forbidden\\n' + LONG,
            'paste_5_5.txt': '',
        }}
        for name, text in files.items():
            folder.joinpath(name).write_bytes(text.encode())
        elsewhere = Path('elsewhere.txt')
        elsewhere.write_text('forbidden\\n' + LONG)
        folder.joinpath('paste_6_6.txt').symlink_to(elsewhere.absolute())
        agent = stage.agent()
        for name in ('paste_1_1.txt', 'paste_2_2.txt', 'paste_3_3.txt'):
            text = folder.joinpath(name).read_text()
            stage.say(agent, 'look: ' + text.strip() + ' done', Reply('ok'))
        names = [*files, 'paste_6_6.txt']
        report(left={{name: folder.joinpath(name).read_bytes().decode() for name in names}},
               was=files, link=folder.joinpath('paste_6_6.txt').is_symlink())
        """,
    )
    left, was = facts["left"], facts["was"]
    assert left.pop("paste_1_1.txt") == "[withheld by rules]"
    assert left.pop("paste_2_2.txt") == "[rewritten by an extension]"
    assert "forbidden" in left.pop("paste_6_6.txt")
    assert facts["link"]
    assert left == {name: was[name] for name in left}


def test_a_paste_at_the_terminal(hermes: HomeFactory, model_factory: ModelFactory) -> None:
    """Nothing in the home holds the secret that was pasted; the model gets the rest."""

    def script(request: ModelRequest) -> Reply:
        return Reply(f"Heard {sum(each['role'] == 'user' for each in request.messages)}.")

    model = model_factory(script)
    home = hermes(model)
    home.extension("rules", HEAD.replace("import __main__\n", "") + RULES)
    give_words(home)
    with chat(home) as person:
        person.terminal.wait(READY)
        person.terminal.press(f"\x1b[200~{SECRET}\r{LONG}\x1b[201~")
        person.terminal.wait("Pasted text #1")
        person.terminal.press(ENTER)
        person.terminal.wait("Heard 1.")
    assert "*** please" not in model.main_requests[-1].last_user
    assert "***" in model.main_requests[-1].last_user
    assert "line 7" in model.main_requests[-1].last_user
    assert [file.read_text() for file in home.home.glob("pastes/paste_*.txt")] == [
        "[rewritten by an extension]"
    ]
    held = [
        file
        for file in home.home.rglob("*")
        if file.is_file()
        and "extensions" not in file.parts
        and SECRET.encode() in file.read_bytes()
    ]
    assert held == []
