"""The canary's plugin of Hermes: tells how the wraps stand, and whose the other functions are.

It runs inside of Hermes, beside the user's plugins, and changes nothing.
"""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

from hermes_ext._canary import marks


def register(ctx: Any) -> None:
    """What Hermes calls; again when it has plugins discovered again."""
    for hook in ("pre_llm_call", "post_llm_call", "on_session_end"):
        ctx.register_hook(hook, _tell)
    _end_in_time()


@functools.cache
def _end_in_time() -> None:
    # If the command is killed nobody is left to end Hermes.
    timer = threading.Timer(float(os.environ[marks.SECONDS]), os._exit, (1,))
    timer.daemon = True
    timer.start()


def _tell(**_: Any) -> None:
    from hermes_ext.hosts.hermes.seams import standings

    plugins = _plugins()
    rows = [
        {
            "seam": str(seam),
            "status": status,
            "needed": seam.needed,
            "hooks": [str(hook) for hook in seam.hooks],
            **_whose(function, seam.module, plugins),
        }
        for seam, status, function in standings()
    ]
    loaded = [name for name, module in plugins.items() if module is not None]
    file = Path(os.environ[marks.STANDING])
    beside = file.with_suffix(f".{threading.get_ident()}")
    beside.write_text(json.dumps({"seams": rows, "plugins": loaded}), encoding="utf-8")
    os.replace(beside, file)


def _plugins() -> dict[str, ModuleType | None]:
    """Hermes's plugins by name; None for one that is not loaded."""
    manager = sys.modules["hermes_cli.plugins"].get_plugin_manager()
    known = getattr(manager, "_plugins", {})
    return {name: getattr(plugin, "module", None) for name, plugin in known.items()}


def _whose(
    function: Any, host_module: str, plugins: dict[str, ModuleType | None]
) -> dict[str, str | None]:
    """The plugin that a function comes from, and its module; both None for the host's own."""
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None)
    # `__module__` is what `functools.wraps` has copied; the globals are those of the code.
    home = getattr(function, "__globals__", {}).get("__name__") or type(function).__module__
    if function is None or home == host_module:
        return {"plugin": None, "place": None}
    place = home if code is None else f"{home}, line {code.co_firstlineno}"
    for name, module in plugins.items():
        if module is not None and f"{home}.".startswith(f"{module.__name__}."):
            return {"plugin": name, "place": place}
    return {"plugin": None, "place": place}
