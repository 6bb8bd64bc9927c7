"""Every action of every hook, through the real `hermes -z` with an extension in its home."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.harness.home import HermesHome

from hermes_ext.testing import Reply, ScriptedModel, ToolUse

pytestmark = pytest.mark.hermes

ModelFactory = Callable[..., ScriptedModel]
HomeFactory = Callable[..., HermesHome]

HEAD = "from hermes_ext import HookResult, register_hook\n\n"


def write(name: str, content: str = "x") -> ToolUse:
    return ToolUse("write_file", {"path": name, "content": content})


def results_of(model: ScriptedModel, request: int = -1) -> list[str]:
    return [text for _, text in model.main_requests[request].tool_results]


class TestInput:
    def test_rewrite(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """A rewritten input is what the model gets and what is saved; the original is nowhere."""
        model = model_factory([Reply("Done.")])
        home = hermes(model)
        home.extension(
            "upper",
            HEAD
            + "@register_hook('transform_user_input')\n"
            + "def up(user_message):\n"
            + "    return HookResult.rewrite('PLAN FIRST: ' + user_message[::-1])\n",
        )
        run = home.oneshot("fix zebra").check()
        assert run.stdout == "Done.\n"
        assert model.main_requests[0].last_user == "PLAN FIRST: arbez xif"
        saved = [content for _, content in home.session_rows()]
        assert saved == ["PLAN FIRST: arbez xif", "Done."]
        assert home.occurrences("fix zebra") == []

    def test_answer(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """An answered input is replied to and saved without a request to the model."""
        model = model_factory([])
        home = hermes(model)
        home.extension(
            "pong",
            HEAD
            + "@register_hook('transform_user_input')\n"
            + "def pong(user_message):\n"
            + "    return HookResult.answer('pong') if user_message == 'ping' else None\n",
        )
        run = home.oneshot("ping").check()
        assert run.stdout == "pong\n"
        assert model.main_requests == []
        saved = home.session_rows()
        assert saved == [("user", "ping"), ("assistant", "pong")]

    def test_block(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """A blocked input is answered with the reason, and its text is nowhere in the home."""
        model = model_factory([])
        home = hermes(model)
        home.extension(
            "no-secrets",
            HEAD
            + "@register_hook('transform_user_input', guard=True)\n"
            + "def check(user_message):\n"
            + "    return HookResult.block('That looks like a password.')\n",
        )
        run = home.oneshot("my password is hunter2-xyzzy").check()
        assert run.stdout == "That looks like a password.\n"
        assert model.main_requests == []
        saved = home.session_rows()
        assert saved == [
            ("user", "[withheld by no-secrets]"),
            ("assistant", "That looks like a password."),
        ]
        assert home.occurrences("hunter2-xyzzy") == []


class TestRequest:
    @pytest.mark.parametrize("api_mode", ["chat_completions", "anthropic_messages"])
    def test_inject_system(
        self, model_factory: ModelFactory, hermes: HomeFactory, api_mode: str
    ) -> None:
        """Injected text stands once at the end of each system prompt, and is not saved."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("Done.")])
        home = hermes(model, api_mode=api_mode)
        home.extension(
            "rules",
            HEAD
            + "@register_hook('before_llm_call')\n"
            + "def rules(system_prompt):\n"
            + "    return HookResult.inject_system('RULE-ONE applies.')\n",
        )
        home.oneshot("hello").check()
        assert len(model.main_requests) == 2
        for request in model.main_requests:
            assert request.system.count("RULE-ONE applies.") == 1
            assert request.system.endswith("RULE-ONE applies.")
        assert model.main_requests[0].system == model.main_requests[1].system
        assert home.occurrences("RULE-ONE applies.") == [home.home / "extensions/rules/__init__.py"]

    @pytest.mark.parametrize("api_mode", ["chat_completions", "anthropic_messages"])
    def test_inject_user(
        self, model_factory: ModelFactory, hermes: HomeFactory, api_mode: str
    ) -> None:
        """Injected user text comes last: in the user's message, or after tool results."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("Done.")])
        home = hermes(model, api_mode=api_mode)
        home.extension(
            "note",
            HEAD
            + "@register_hook('before_llm_call')\n"
            + "def note(api_call_count):\n"
            + "    return HookResult.inject_user(f'NOTE-{api_call_count}-END')\n",
        )
        home.oneshot("hello there").check()
        first, second = model.main_requests
        assert first.last_user.startswith("hello there")
        assert first.last_user.endswith("NOTE-1-END")
        assert not second.contains("NOTE-1-END")
        assert json.dumps(second.body, ensure_ascii=False).count("NOTE-2-END") == 1
        assert second.messages[-1]["role"] == "user"
        assert "NOTE-2-END" in json.dumps(second.messages[-1])
        assert home.occurrences("NOTE-1-END") == []

    def test_rewrite(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """Rewritten messages are what is sent; the saved session keeps what was said."""
        model = model_factory([Reply("Done.")])
        home = hermes(model)
        home.extension(
            "masking",
            HEAD
            + "@register_hook('before_llm_call')\n"
            + "def mask(messages):\n"
            + "    for message in messages:\n"
            + "        message['content'] = message['content'].replace('4711', '****')\n"
            + "    return HookResult.rewrite(messages)\n",
        )
        home.oneshot("my number is 4711").check()
        assert model.main_requests[0].last_user == "my number is ****"
        assert home.session_rows()[0][1] == "my number is 4711"

    @pytest.mark.parametrize("api_mode", ["chat_completions", "anthropic_messages"])
    def test_answer(self, model_factory: ModelFactory, hermes: HomeFactory, api_mode: str) -> None:
        """An answered request never leaves: the text is the turn's final response."""
        model = model_factory([])
        home = hermes(model, api_mode=api_mode)
        home.extension(
            "cached",
            HEAD
            + "@register_hook('before_llm_call')\n"
            + "def cached(messages):\n    return HookResult.answer('From the cache.')\n",
        )
        run = home.oneshot("what is it").check()
        assert run.stdout == "From the cache.\n"
        assert model.main_requests == []
        assert [content for _, content in home.session_rows()] == ["what is it", "From the cache."]

    def test_block(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """A blocked request ends the turn with the reason; nothing more is sent in it."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),))])
        home = hermes(model)
        home.extension(
            "one-request",
            HEAD
            + "@register_hook('before_llm_call', guard=True)\n"
            + "def once(api_call_count):\n"
            + "    return HookResult.block('Enough requests.') if api_call_count > 1 else None\n",
        )
        run = home.oneshot("go").check()
        assert "[one-request] Enough requests." in run.stdout
        assert len(model.main_requests) == 1


class TestToolCall:
    def test_rewrite(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """A tool runs with the rewritten arguments."""
        model = model_factory([Reply(tool_calls=(write("a.txt", "plain"),)), Reply("Done.")])
        home = hermes(model)
        home.extension(
            "stamp",
            HEAD
            + "@register_hook('intercept_tool_call', tools=['write_file'])\n"
            + "def stamp(tool_args):\n"
            + "    return HookResult.rewrite({**tool_args, 'content': 'stamped'})\n",
        )
        home.oneshot("go").check()
        assert (home.project / "a.txt").read_text() == "stamped"

    def test_answer(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """An answered tool call does not run; the answer is its result."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("Done.")])
        home = hermes(model)
        home.extension(
            "dry-run",
            HEAD
            + "@register_hook('intercept_tool_call', tools=['write_file'])\n"
            + "def dry(tool_args):\n"
            + "    return HookResult.answer('DRY RUN: ' + tool_args['path'])\n",
        )
        home.oneshot("go").check()
        assert results_of(model)[0].startswith("DRY RUN: a.txt")
        assert not (home.project / "a.txt").exists()

    def test_ask_without_a_person(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """One-shot mode has nobody to ask, so a call that needs a yes is refused."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("Done.")])
        home = hermes(model)
        home.extension(
            "careful",
            HEAD
            + "@register_hook('intercept_tool_call', guard=True)\n"
            + "def careful(tool_name):\n    return HookResult.ask('Writing needs a yes.')\n",
        )
        home.oneshot("go").check()
        assert "[careful] Writing needs a yes." in results_of(model)[0]
        assert not (home.project / "a.txt").exists()

    def test_ask_where_the_user_said_approve(
        self, model_factory: ModelFactory, hermes: HomeFactory
    ) -> None:
        """With `ask_without_human: approve` it runs, and the log says who approved."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("Done.")])
        home = hermes(model, extensions={"ask_without_human": "approve"})
        home.extension(
            "careful",
            HEAD
            + "@register_hook('intercept_tool_call', guard=True)\n"
            + "def careful(tool_name):\n    return HookResult.ask('Writing needs a yes.')\n",
        )
        home.oneshot("go").check()
        assert (home.project / "a.txt").exists()

    def test_block(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """A blocked call is an error that names the extension to the model; no file is touched."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("Understood.")])
        home = hermes(model)
        home.extension(
            "read-only",
            HEAD
            + "@register_hook('intercept_tool_call', guard=True, tools=['write_file', 'patch'])\n"
            + "def no(tool_name):\n    return HookResult.block('This tree is read-only.')\n",
        )
        run = home.oneshot("go").check()
        assert run.stdout == "Understood.\n"
        assert json.loads(results_of(model)[0]) == {"error": "[read-only] This tree is read-only."}
        assert list(home.project.iterdir()) == []

    def test_one_of_three_parallel_calls(
        self, model_factory: ModelFactory, hermes: HomeFactory
    ) -> None:
        """Of parallel calls exactly the blocked one is missing; results keep their order."""
        calls = (write("a.txt"), write("b.txt"), write("c.txt"))
        model = model_factory([Reply(tool_calls=calls), Reply("Done.")])
        home = hermes(model)
        home.extension(
            "not-b",
            HEAD
            + "@register_hook('intercept_tool_call', guard=True)\n"
            + "def no(tool_args):\n"
            + "    return HookResult.block('not b') if tool_args['path'] == 'b.txt' else None\n",
        )
        home.oneshot("go").check()
        assert sorted(path.name for path in home.project.iterdir()) == ["a.txt", "c.txt"]
        ids = [call_id for call_id, _ in model.main_requests[1].tool_results]
        assert ids == ["call_1", "call_2", "call_3"]
        assert ["[not-b] not b" in text for text in results_of(model)] == [False, True, False]
        assert model.exhausted == 0


class TestToolResult:
    def test_rewrite(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """The model sees the rewritten result."""
        read = ToolUse("read_file", {"path": "secret.txt"})
        model = model_factory([Reply(tool_calls=(read,)), Reply("Done.")])
        home = hermes(model)
        (home.project / "secret.txt").write_text("token=abcdef123\n")
        home.extension(
            "masker",
            HEAD
            + "@register_hook('transform_tool_result')\n"
            + "def mask(result, status, duration_ms, tool_name):\n"
            + "    return HookResult.rewrite(result.replace('abcdef123', '[MASKED]'))\n",
        )
        home.oneshot("go").check()
        assert "token=[MASKED]" in results_of(model)[0]
        assert not model.main_requests[1].contains("abcdef123")

    def test_block(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """A blocked result is withheld: the model learns who kept it and why."""
        read = ToolUse("read_file", {"path": "secret.txt"})
        model = model_factory([Reply(tool_calls=(read,)), Reply("Done.")])
        home = hermes(model)
        (home.project / "secret.txt").write_text("token=abcdef123\n")
        home.extension(
            "keeper",
            HEAD
            + "@register_hook('transform_tool_result', guard=True)\n"
            + "def keep(result):\n"
            + "    return HookResult.block('It holds a token.') if 'token=' in result else None\n",
        )
        home.oneshot("go").check()
        assert "[keeper] It holds a token." in results_of(model)[0]
        assert not model.main_requests[1].contains("abcdef123")


class TestSeveralExtensions:
    def test_priority_and_short_circuit(
        self, model_factory: ModelFactory, hermes: HomeFactory
    ) -> None:
        """The lower priority runs first, and what it blocks the other never sees."""
        model = model_factory([Reply(tool_calls=(write("a.txt"),)), Reply("Done.")])
        home = hermes(model)
        seen = home.base / "seen"
        home.extension(
            "a-late",
            HEAD
            + "import pathlib\n"
            + "@register_hook('intercept_tool_call', priority=20)\n"
            + f"def late(tool_name):\n    pathlib.Path({str(seen)!r}).write_text('late')\n",
        )
        home.extension(
            "z-early",
            HEAD
            + "@register_hook('intercept_tool_call', priority=10)\n"
            + "def early(tool_name):\n    return HookResult.block('first')\n",
        )
        home.oneshot("go").check()
        assert json.loads(results_of(model)[0]) == {"error": "[z-early] first"}
        assert not seen.exists()

    def test_two_rewrites_compose(self, model_factory: ModelFactory, hermes: HomeFactory) -> None:
        """The second rewriting extension gets what the first made, for input, request and tool."""
        model = model_factory([Reply(tool_calls=(write("a.txt", "0"),)), Reply("Done.")])
        home = hermes(model)
        for name in ("one", "two"):
            home.extension(
                name,
                HEAD
                + "@register_hook('transform_user_input')\n"
                + "def text(user_message):\n"
                + f"    return HookResult.rewrite(user_message + ' {name}')\n"
                + "@register_hook('before_llm_call')\n"
                + "def messages(messages):\n"
                + f"    messages[-1]['content'] += ' m-{name}'\n"
                + "    return HookResult.rewrite(messages)\n"
                + "@register_hook('intercept_tool_call')\n"
                + "def args(tool_args):\n"
                + f"    content = tool_args['content'] + ' {name}'\n"
                + "    return HookResult.rewrite({**tool_args, 'content': content})\n",
            )
        home.oneshot("go").check()
        assert model.main_requests[0].last_user == "go one two m-one m-two"
        assert (home.project / "a.txt").read_text() == "0 one two"
