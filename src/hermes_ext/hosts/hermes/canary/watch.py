"""The canary's plugin of Hermes: tells how the wraps stand, and whose the other functions are.

It runs inside of Hermes, beside the user's plugins, and changes nothing.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from hermes_ext.hosts.hermes.canary import marks


def register(ctx: Any) -> None:
    """What Hermes calls; again when it has plugins discovered again."""
    for hook in ("pre_llm_call", "post_llm_call", "on_session_end"):
        ctx.register_hook(hook, _tell)
    _end_in_time()


def _end_in_time() -> None:
    if any(each.name == marks.PLUGIN for each in threading.enumerate()):
        return
    # If the command is killed nobody is left to end Hermes. Not of the pool, which may be at fault.
    timer = threading.Timer(float(os.environ[marks.SECONDS]), os._exit, (1,))
    timer.name, timer.daemon = marks.PLUGIN, True
    timer.start()


def _tell(**_: Any) -> None:
    from hermes_ext.hosts.hermes.adapter.wraps.attaching import owner_of, plugins, standings

    rows = []
    for each in standings():
        plugin, place = owner_of(each.function, each.seam.module)
        rows.append(
            {
                "seam": str(each.seam),
                "status": each.status,
                "needed": each.seam.needed,
                "hooks": [str(hook) for hook in each.seam.hooks],
                "plugin": plugin,
                "place": place,
                "told": str(each),
            }
        )
    loaded = [name for name, module in plugins().items() if module is not None]
    file = Path(os.environ[marks.STANDING])
    beside = file.with_suffix(f".{threading.get_ident()}")
    beside.write_text(json.dumps({"seams": rows, "plugins": loaded}), encoding="utf-8")
    os.replace(beside, file)
