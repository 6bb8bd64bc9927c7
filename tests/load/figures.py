"""How the long runs print what they found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def show(figures: Mapping[str, Any], *, as_json: bool) -> None:
    """Print figures: a line each, or JSON and nothing else."""
    if as_json:
        print(json.dumps(figures, indent=2))
        return
    for name, value in figures.items():
        told = (
            ", ".join(map(str, value)) or "nothing" if isinstance(value, (list, tuple)) else value
        )
        print(f"  {name.replace('_', ' '):<40} {told}")
