"""Agents in a Python process of a scratch home, for what no command line reaches.

`home.python(PRELUDE + program)` runs a program that has `new_agent(**options)` and
`runtime_of(agent)`; the agent is made as one-shot mode makes it.
"""

from __future__ import annotations

PRELUDE = """\
import run_agent
from hermes_cli.config import load_config
from hermes_cli.runtime_provider import resolve_runtime_provider
from hermes_state import SessionDB


def new_agent(**options):
    runtime = resolve_runtime_provider()
    made = {
        'api_key': runtime['api_key'],
        'base_url': runtime['base_url'],
        'provider': runtime['provider'],
        'api_mode': runtime['api_mode'],
        'model': load_config()['model']['default'],
        'quiet_mode': True,
        'platform': 'cli',
        'session_db': SessionDB(),
    }
    return run_agent.AIAgent(**{**made, **options})


def runtime_of(agent):
    names = ('model', 'provider', 'base_url', 'api_key', 'api_mode')
    return {name: getattr(agent, name) for name in names}


"""
