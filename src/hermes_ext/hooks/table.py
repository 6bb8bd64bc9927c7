"""The tables of hooks and of actions, from which follows whatever else lists them."""

# Commands that only need the names import this: no attrs, nothing of ours.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, Literal, NamedTuple, TypeVar

GUARD_TIMEOUT: Final = 10.0


class HookName(StrEnum):
    """The control-flow hooks."""

    TRANSFORM_USER_INPUT = "transform_user_input"
    BEFORE_LLM_CALL = "before_llm_call"
    INTERCEPT_TOOL_CALL = "intercept_tool_call"
    TRANSFORM_TOOL_RESULT = "transform_tool_result"

    # Enum hashes in Python; these are keys of tables that every chain looks into.
    __hash__ = str.__hash__


class Action(StrEnum):
    """What a handler wants done, mildest first; `severity` orders them.

    Severity: block > answer > ask > confine > rewrite > inject_system > inject_user > pass.
    """

    PASS = "pass"
    INJECT_USER = "inject_user"
    INJECT_SYSTEM = "inject_system"
    REWRITE = "rewrite"
    CONFINE = "confine"
    ASK = "ask"
    ANSWER = "answer"
    BLOCK = "block"

    __hash__ = str.__hash__

    @property
    def severity(self) -> int:
        """0 for `pass` up to 7 for `block`."""
        return _SEVERITY[self]


class ActionDef(NamedTuple):
    """What there is to know about an action.

    Attributes:
        did: what it did, for people; `{it}` is what the hook is about.
        style: how a terminal shows it.
        value: what it needs: a `text` (not blank), a `reply` (a text, or ""), what takes the
            place of the hook's own value (`other`), `bounds` of what may change, or `nothing`.
        ends: whether it ends the chain, and the value goes no further.
        judges: whether guards may return it; its text, or that of its bounds, is the reason.
        option: the option of `HookResult` that belongs to it; "" for none.
    """

    did: str
    style: str
    value: Literal["text", "reply", "other", "bounds", "nothing"] = "text"
    ends: bool = False
    judges: bool = False
    option: Literal["", "keep", "key"] = ""


_Name = TypeVar("_Name", bound=StrEnum)
_Value = TypeVar("_Value")


def complete(
    what: str, found: Mapping[_Name, _Value], wanted: Iterable[_Name]
) -> dict[_Name, _Value]:
    """What another room adds to each of these hooks or actions, in their order.

    Raises:
        LookupError: one of them has none; names it.
    """
    names = tuple(wanted)
    missing = [name.value for name in names if not found.get(name)]
    if missing:
        raise LookupError(f"no {what} for {', '.join(missing)}")
    return {name: found[name] for name in names}


ACTIONS: Final[Mapping[Action, ActionDef]] = complete(
    "ActionDef",
    {
        Action.PASS: ActionDef("let {it} pass", "dim", "nothing", judges=True),
        Action.INJECT_USER: ActionDef("added to {it}, as a message", "cyan", option="keep"),
        Action.INJECT_SYSTEM: ActionDef(
            "added to {it}, in the system prompt", "cyan", option="keep"
        ),
        Action.REWRITE: ActionDef("rewrote {it}", "magenta", "other"),
        Action.CONFINE: ActionDef("confined {it}", "yellow", "bounds", judges=True),
        Action.ASK: ActionDef("asked about {it}", "yellow", judges=True, option="key"),
        Action.ANSWER: ActionDef("answered {it} itself", "yellow", "reply", ends=True),
        Action.BLOCK: ActionDef("blocked {it}", "red", ends=True, judges=True),
    },
    Action,
)
"""The actions, mildest first. Which of them a hook takes is in its `HookDef`."""

ENDING: Final = frozenset(action for action, row in ACTIONS.items() if row.ends)
"""The actions that end a chain."""

_JUDGING: Final = frozenset(action for action, row in ACTIONS.items() if row.judges)
_SEVERITY: Final = {action: rank for rank, action in enumerate(Action)}


class Argument(NamedTuple):
    """A name that a handler may ask for.

    Attributes:
        name: of the argument; the event has an attribute of this name.
        type: its annotation.
        text: what it is, for the hook reference.
        needed: whether an event cannot be without it.
        instead: what may be given in its place.
    """

    name: str
    type: str
    text: str = ""
    needed: bool = False
    instead: tuple[str, ...] = ()


class Scaffold(NamedTuple):
    """One handler of a new extension, as `new` writes it.

    Attributes:
        does: what it does, in a sentence.
        setting: its setting, as in `config.yaml`.
        schema: the JSON Schema of the setting, in YAML.
        names: what it imports from `hermes_ext`.
        code: the handler.
        test: its test.
        asserts: what the test imports from `hermes_ext.testing`.
        quiet: a call of the extension under test that changes nothing.
        effects: whether it asks what a call touches.
    """

    does: str
    setting: str
    schema: str
    names: tuple[str, ...]
    code: str
    test: str
    asserts: tuple[str, ...]
    quiet: str
    effects: bool = False


class HookDef(NamedTuple):
    """What there is to know about a hook.

    Attributes:
        name: the hook.
        event: its event's class in `hermes_ext.hooks.payloads`.
        does: what a handler does, in a sentence.
        fires: when the hook fires.
        arguments: what a handler may ask for beside `EVERYWHERE`.
        returns: what each action does.
        fails: what a failure does, in a sentence.
        actions: what a transformer may return.
        so: how the message of a failure that blocks ends.
        object: what the hook is about, in a sentence; `{tool}` is the tool.
        transformer, guard: the handler that `new` writes.
        on_error: what a transformer's failure does; a guard's blocks.
        timeout: seconds that a transformer may take, None for no limit.
        guard_timeout: the same for a guard.
        tools: whether it is about a tool, so that `tools=` limits its handlers.
        background: whether it fires for background reviews without `origins=`.
        rewritten: what a rewrite changes, in a sentence; "" for the object.
        refused: what a block does to the object, in a sentence.
        repeats: whether what is rewritten is rewritten again each time, and so is no news.
        samples: events, by the names of their arguments. Those that name tools are the host's.
    """

    name: HookName
    event: str
    does: str
    fires: str
    arguments: tuple[Argument, ...]
    returns: str
    fails: str
    actions: frozenset[Action]
    so: str
    object: str
    transformer: Scaffold
    guard: Scaffold
    on_error: Literal["pass", "block"] = "pass"
    timeout: float | None = None
    guard_timeout: float | None = GUARD_TIMEOUT
    tools: bool = False
    background: bool = True
    rewritten: str = ""
    refused: str = "blocked"
    repeats: bool = False
    samples: tuple[Mapping[str, Any], ...] = ()

    @property
    def verdicts(self) -> frozenset[Action]:
        """What a guard may return."""
        return self.actions & _JUDGING

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that a handler may ask for."""
        return tuple(one.name for one in (*self.arguments, *EVERYWHERE))


EVERYWHERE: Final = (
    Argument("event", "Event"),
    Argument("session_id", "str | None"),
    Argument("conversation_id", "str | None"),
    Argument("turn_id", "str | None"),
    Argument("turn_number", "int | None"),
    Argument("task_id", "str | None"),
    Argument("platform", "str | None"),
    Argument("origin", "str | None"),
    Argument("interactive", "bool | None"),
    Argument("model", "str | None"),
    Argument("cwd", "Path | None"),
    Argument("project_root", "Path | None"),
    Argument("is_subagent", "bool | None"),
    Argument("parent_session_id", "str | None"),
    Argument("sender_id", "str | None"),
    Argument("chat_id", "str | None"),
    Argument("state", "MutableMapping[str, Any]"),
    Argument("session_state", "MutableMapping[str, Any]"),
    Argument("config", "Any"),
    Argument("data_dir", "Path"),
    Argument("metadata", "Mapping[str, Any]"),
)
"""What a handler of any hook may ask for."""

_TOOL_NAME: Final = Argument(
    "tool_name", "str", "the tool. `tools=` limits a handler to some of them.", needed=True
)

_TRANSFORM_USER_INPUT: Final = HookDef(
    name=HookName.TRANSFORM_USER_INPUT,
    event="UserInput",
    does="Look at what the user wrote, before messages are built from it.",
    fires="""\
Fires once per turn, also for input without text, and for text that steers a running turn
(`origin` is `steer`). Not for background reviews, unless `origins=` names `background`.""",
    arguments=(
        Argument(
            "user_message",
            "str",
            "the text that the person typed. A skill's expansion is reduced to it.",
            needed=True,
            instead=("user_content",),
        ),
        Argument(
            "user_content",
            "list[dict[str, Any]] | None",
            "the parts, where the message is a list; None where it is plain text.",
        ),
        Argument("command", "str | None", "the skill whose slash command the text came with."),
    ),
    returns="""\
None or `pass`: no opinion. `rewrite`: a `str` replaces the text and keeps the other parts and the \
host's own prefixes; a list replaces all parts. `answer`: the reply to the user, without the \
model; "" for none. `block`: refused, with the text that the user sees. A guard returns `pass` or \
`block`.""",
    fails="""\
A failure passes with the input unchanged; a guard's failure blocks. `on_error=` changes it.""",
    actions=frozenset({Action.PASS, Action.REWRITE, Action.ANSWER, Action.BLOCK}),
    so=", so this input is refused",
    object="the message",
    background=False,
    samples=(
        {"user_message": "Fix the bug in src/app.py, then push my branch."},
        {"user_message": "thanks"},
    ),
    transformer=Scaffold(
        does="Writes short forms in what the user typed out.",
        setting='short_forms: {"!t": "Run the tests."}',
        schema="""\
    short_forms:
      type: object
      additionalProperties: {type: string}
      default: {}
      description: What is written for each short form.
""",
        names=("InputResult",),
        code='''
@register_hook("transform_user_input")
def write_out(user_message: str, config: Mapping[str, Any]) -> InputResult:
    """Write short forms out, as the setting `short_forms` has them."""
    forms = config["short_forms"]
    text = " ".join(str(forms.get(word, word)) for word in user_message.split(" "))
    return None if text == user_message else HookResult.rewrite(text)
''',
        test='''
def test_short_forms_are_written_out(load_extension: LoadExtension) -> None:
    """Whole words are replaced, and nothing else."""
    settings = {"short_forms": {"!t": "Run the tests."}}
    extension = load_extension(EXTENSION, config=settings)
    assert_rewritten(extension.input("!t Now."), "Run the tests. Now.")
    assert_passed(extension.input("hello!t"))
''',
        asserts=("assert_rewritten",),
        quiet='input("hello")',
    ),
    guard=Scaffold(
        does="Refuses requests that name certain words.",
        setting="refused_words: [payroll]",
        schema="""\
    refused_words:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: A request with one of them is not answered. Case does not matter.
""",
        names=("InputVerdict",),
        code='''
@register_hook("transform_user_input", guard=True)
def refuse_request(user_message: str, config: Mapping[str, Any]) -> InputVerdict:
    """Refuse what names one of the setting `refused_words`."""
    for word in config["refused_words"]:
        if str(word).casefold() in user_message.casefold():
            return HookResult.block(f"This is not discussed here: {word}.")
    return None
''',
        test='''
def test_words_are_refused(load_extension: LoadExtension) -> None:
    """In any case of the letters."""
    extension = load_extension(EXTENSION, config={"refused_words": ["payroll"]})
    outcome = extension.input("Show me the Payroll")
    assert_blocked(outcome, by=extension.name, match="payroll")
    assert_passed(extension.input("Show me the plan"))
''',
        asserts=("assert_blocked",),
        quiet='input("hello")',
    ),
)

_BEFORE_LLM_CALL: Final = HookDef(
    name=HookName.BEFORE_LLM_CALL,
    event="LLMRequest",
    does="Look at a request to the model, before it is sent.",
    fires="""\
Fires once per request of the main loop and for the iteration-limit summary. A retry is the
same request and does not fire again.""",
    arguments=(
        Argument(
            "messages",
            "list[dict[str, Any]]",
            "in chat-completions form whatever the provider speaks, with what earlier handlers "
            "injected for the user at the end.",
            needed=True,
        ),
        Argument(
            "system_prompt",
            "str",
            "the system prompt, with what earlier handlers injected at its end.",
        ),
        Argument("api_call_count", "int | None", "1 for the turn's first request."),
        Argument("request_id", "str | None", "the host's id of the request."),
    ),
    returns="""\
None or `pass`: no opinion. `inject_system`: text for the end of the system prompt. `inject_user`: \
text behind everything else. `rewrite`: other messages (injections are added to them all the \
same). `answer`: the reply to the user, without the model; "" for none. `block`: the model is not \
asked; the text is what the user sees. A guard returns `pass` or `block`. What is injected or \
rewritten is not saved in the session; the text of an answer or block is, as the reply that it \
is.""",
    fails="A failure passes with the request unchanged; a guard's failure blocks.",
    actions=frozenset(Action) - {Action.ASK, Action.CONFINE},
    so=", so this request is refused",
    object="the request to the model",
    repeats=True,
    samples=(
        {
            "messages": [
                {"role": "user", "content": "Fix the bug in src/app.py, then push my branch."}
            ],
            "system_prompt": "You are a helpful agent.",
            "api_call_count": 1,
            "request_id": "sample-request",
        },
    ),
    transformer=Scaffold(
        does="Adds a reminder to the model's instructions.",
        setting='reminder: "Answer in one sentence."',
        schema="""\
    reminder:
      type: string
      default: ""
      description: What the model is told with each request. Empty for nothing.
""",
        names=("RequestResult",),
        code='''
@register_hook("before_llm_call")
def remind(config: Mapping[str, Any]) -> RequestResult:
    """Add the setting `reminder` to the system prompt."""
    reminder = str(config["reminder"])
    return HookResult.inject_system(reminder) if reminder.strip() else None
''',
        test='''
def test_the_model_is_reminded(load_extension: LoadExtension) -> None:
    """The reminder stands at the end of the system prompt."""
    extension = load_extension(EXTENSION, config={"reminder": "Be brief."})
    with extension.turn() as turn:
        outcome = turn.request("hello", "You are an agent.")
        assert_injected(outcome, "Be brief", where="system")
        assert turn.sent.system_prompt == "You are an agent.\\n\\nBe brief."
''',
        asserts=("assert_injected",),
        quiet='request("hello")',
    ),
    guard=Scaffold(
        does="Ends a turn that makes too many requests to the model.",
        setting="most_requests: 20",
        schema="""\
    most_requests:
      type: [integer, "null"]
      minimum: 1
      default: null
      description: How many requests one turn may make. null for no limit.
""",
        names=("RequestVerdict",),
        code='''
@register_hook("before_llm_call", guard=True)
def limit_requests(
    config: Mapping[str, Any], api_call_count: int = 1
) -> RequestVerdict:
    """Refuse requests beyond the setting `most_requests`."""
    limit = config["most_requests"]
    if limit is not None and api_call_count > limit:
        return HookResult.block(f"This turn has made its {limit} requests.")
    return None
''',
        test='''
def test_requests_of_a_turn_are_limited(load_extension: LoadExtension) -> None:
    """The next turn begins at zero."""
    extension = load_extension(EXTENSION, config={"most_requests": 2})
    for _ in range(2):
        with extension.turn() as turn:
            assert_passed(turn.request())
            assert_passed(turn.request())
            assert_blocked(turn.request(), by=extension.name, match="2 requests")
''',
        asserts=("assert_blocked",),
        quiet='request("hello")',
    ),
)

_INTERCEPT_TOOL_CALL: Final = HookDef(
    name=HookName.INTERCEPT_TOOL_CALL,
    event="ToolCall",
    does="Look at a tool call, before it runs.",
    fires="Fires once per tool call, on every path that leads to a tool.",
    arguments=(
        _TOOL_NAME,
        Argument(
            "tool_args", "dict[str, Any]", "its arguments, after the host's own coercion of types."
        ),
        Argument("tool_call_id", "str", "never empty, unique in its turn."),
    ),
    returns="""\
None or `pass`: no opinion. `rewrite`: other arguments (a dict with `str` keys that the tool's \
schema allows). `confine`: the call runs, and what it starts can change only the writable paths; \
where that cannot be had the call is blocked, or asked about. `answer`: the tool's result, without \
running it. `ask`: a person decides; without a person the call is blocked. `block`: the call does \
not run and the model gets the text as an error. A guard returns `pass`, `confine`, `ask` or \
`block`.""",
    fails="""\
A failure blocks the call, guard or not; `on_error="pass"` or `"ask"` changes that.""",
    actions=frozenset(Action) - {Action.INJECT_SYSTEM, Action.INJECT_USER},
    so=", so this call is refused",
    object="{tool}",
    on_error="block",
    tools=True,
    rewritten="the arguments of {tool}",
    transformer=Scaffold(
        does="Runs other programs in the terminal than those that the model names.",
        setting="replaced_programs: {grep: rg}",
        schema="""\
    replaced_programs:
      type: object
      additionalProperties: {type: string}
      default: {}
      description: What is run in place of each program at the start of a command.
""",
        names=("CallResult",),
        code='''
@register_hook("intercept_tool_call", tools=["terminal"])
def replace(tool_args: dict[str, Any], config: Mapping[str, Any]) -> CallResult:
    """Run other programs, as the setting `replaced_programs` has them."""
    program, blank, rest = str(tool_args.get("command", "")).partition(" ")
    other = config["replaced_programs"].get(program)
    if other is None:
        return None
    return HookResult.rewrite({**tool_args, "command": f"{other}{blank}{rest}"})
''',
        test='''
def test_programs_are_replaced(load_extension: LoadExtension) -> None:
    """Only the program at the start of a command, and only in the terminal."""
    extension = load_extension(EXTENSION, config={"replaced_programs": {"grep": "rg"}})
    outcome = extension.call("terminal", {"command": "grep -n grep notes.txt"})
    assert_rewritten(outcome, {"command": "rg -n grep notes.txt"})
    assert_passed(extension.call("read_file", {"path": "grep"}))
''',
        asserts=("assert_rewritten",),
        quiet='call("terminal", {"command": "ls"})',
    ),
    guard=Scaffold(
        does="Refuses tool calls that would start certain programs, and confines others.",
        setting="refused_programs: [shutdown, reboot]\n    read_only_programs: [make]",
        schema="""\
    refused_programs:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: Programs that no tool call may start, by name.
    read_only_programs:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: Calls that start one of these can change no file of the project.
""",
        names=("CallVerdict", "ToolCall"),
        code='''
@register_hook("intercept_tool_call", guard=True)
def refuse_programs(event: ToolCall, config: Mapping[str, Any]) -> CallVerdict:
    """Refuse or confine what would start one of the programs that the settings name."""
    names = [command.name for command in effects_of(event).commands]
    for name in names:
        if name in config["refused_programs"]:
            return HookResult.block(f"{name} is not to be run here.")
    for name in names:
        if name in config["read_only_programs"]:
            return HookResult.confine(reason=f"{name} changes nothing here")
    return None
''',
        test='''
def test_programs_are_refused(load_extension: LoadExtension) -> None:
    """Wherever they stand in a command, and nothing else that bears their name."""
    extension = load_extension(EXTENSION, config={"refused_programs": ["reboot"]})
    outcome = extension.call("terminal", {"command": "cd / && sudo reboot"})
    assert_blocked(outcome, by=extension.name, match="reboot")
    assert_passed(extension.call("terminal", {"command": "echo reboot"}))


def test_programs_are_confined(load_extension: LoadExtension) -> None:
    """They run, and can change nothing."""
    extension = load_extension(EXTENSION, config={"read_only_programs": ["make"]})
    outcome = extension.call("terminal", {"command": "make check"})
    assert_confined(outcome, writable=[], match="make")
''',
        asserts=("assert_blocked", "assert_confined"),
        quiet='call("terminal", {"command": "ls"})',
        effects=True,
    ),
)

_TRANSFORM_TOOL_RESULT: Final = HookDef(
    name=HookName.TRANSFORM_TOOL_RESULT,
    event="ToolResult",
    does="Look at a tool's result, before the model sees it.",
    fires="Fires once per tool result.",
    arguments=(
        _TOOL_NAME,
        Argument("tool_args", "dict[str, Any]", "the arguments that it ran with."),
        Argument("tool_call_id", "str", "as in `intercept_tool_call`."),
        Argument(
            "result",
            "str",
            "all of its text that any model may get. Of a result with images: text parts, "
            "captions and the summary for models without vision, one per line, each once.",
            needed=True,
        ),
        Argument("status", "str | None", "how the call ended, in the host's words."),
        Argument("duration_ms", "float | None", "how long it ran, in milliseconds."),
    ),
    returns="""\
None or `pass`: no opinion. `rewrite`: another text in place of all of it; images stay. `block`: \
the result is withheld from the model, images too, and the text is what the model gets. A guard \
returns `pass` or `block`.""",
    fails="A failure passes with the result unchanged; a guard's failure blocks.",
    actions=frozenset({Action.PASS, Action.REWRITE, Action.BLOCK}),
    so=", so this result is withheld",
    object="the result of {tool}",
    tools=True,
    refused="withheld",
    transformer=Scaffold(
        does="Hides texts in the results of tools from the model.",
        setting="hidden_texts: [Project Bluebird]",
        schema="""\
    hidden_texts:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: What the model sees as [hidden].
""",
        names=("ToolOutputResult",),
        code='''
@register_hook("transform_tool_result")
def hide(result: str, config: Mapping[str, Any]) -> ToolOutputResult:
    """Replace the texts of the setting `hidden_texts`."""
    shown = result
    for text in config["hidden_texts"]:
        shown = shown.replace(str(text), "[hidden]")
    return None if shown == result else HookResult.rewrite(shown)
''',
        test='''
def test_texts_are_hidden(load_extension: LoadExtension) -> None:
    """Wherever they stand in a result."""
    extension = load_extension(EXTENSION, config={"hidden_texts": ["Bluebird"]})
    outcome = extension.result("read_file", {"path": "notes.txt"}, "On Bluebird: late.")
    assert_rewritten(outcome, "On [hidden]: late.")
''',
        asserts=("assert_rewritten",),
        quiet='result("read_file", {"path": "notes.txt"}, "dull")',
    ),
    guard=Scaffold(
        does="Withholds results of tools that name certain words from the model.",
        setting="withheld_words: [confidential]",
        schema="""\
    withheld_words:
      type: array
      items: {type: string, minLength: 1}
      default: []
      description: A result with one of them is withheld. Case does not matter.
""",
        names=("ToolOutputVerdict",),
        code='''
@register_hook("transform_tool_result", guard=True)
def withhold(result: str, config: Mapping[str, Any]) -> ToolOutputVerdict:
    """Withhold what names one of the setting `withheld_words`."""
    for word in config["withheld_words"]:
        if str(word).casefold() in result.casefold():
            return HookResult.block(f"This result is withheld: it is {word}.")
    return None
''',
        test='''
def test_results_are_withheld(load_extension: LoadExtension) -> None:
    """In any case of the letters."""
    extension = load_extension(EXTENSION, config={"withheld_words": ["secret"]})
    outcome = extension.result("read_file", {"path": "notes.txt"}, "Top SECRET")
    assert_blocked(outcome, by=extension.name, match="secret")
''',
        asserts=("assert_blocked",),
        quiet='result("read_file", {"path": "notes.txt"}, "dull")',
    ),
)

_INPUT_ROWS: Final = (_TRANSFORM_USER_INPUT, _BEFORE_LLM_CALL)
_TOOL_ROWS: Final = (_INTERCEPT_TOOL_CALL, _TRANSFORM_TOOL_RESULT)
TABLE: Final = complete("HookDef", {row.name: row for row in (*_INPUT_ROWS, *_TOOL_ROWS)}, HookName)
"""The hooks, in the order in which a turn comes to them."""
