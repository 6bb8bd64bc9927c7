"""Python code: what speaks of the rules may only read."""

from __future__ import annotations

import pytest
from tests.guard.conftest import Ground

REFUSED = [
    "open('/root/.hermes/config.yaml', 'w').write('x')",
    "import os\nos.remove(os.path.expanduser('~/.hermes/config.yaml'))",
    "from os import remove as r, path as p\nr(p.join(p.expanduser('~'), '.hermes', '.env'))",
    "from pathlib import Path\n(Path.home() / '.hermes' / 'config.yaml').write_text('x')",
    "from pathlib import Path\nPath('~/.hermes/config.yaml').expanduser().unlink()",
    "from pathlib import Path as P\n(P.home() / 'a').with_name('.hermes').joinpath('x').touch()",
    "import shutil\nshutil.rmtree('.hermes')",
    "import shutil, os\nshutil.rmtree(os.getcwd())",
    "import shutil\nshutil.move('src', '.hermes/extensions/src')",
    "import os\nos.chdir(os.path.expanduser('~/.hermes'))\nopen('config.yaml', 'a').write('x')",
    "import os\nos.rename('.hermes', 'x')",
    "import subprocess\nsubprocess.run(['rm', '-rf', '.hermes'])",
    "import subprocess\nsubprocess.run('rm -rf ~/.hermes', shell=True)",
    "import subprocess as s\ns.check_call(['hermes-ext', 'disable', 'x'])",
    "import os\nos.system('hermes extensions disable x')",
    "import subprocess\nsubprocess.run('hermes-ext new x'.split())",
    "import subprocess\nsubprocess.run(['hermes-ext', *'disable x'.split()])",
    "from hermes_ext import Runtime\nRuntime.from_config().command('plan', 'off')",
    "from hermes_ext import Runtime\nr = Runtime.from_config()\nr.session_state('s', 'x').clear()",
    "from subprocess import Popen\nPopen(['hermes', '--resume', 's'], stdin=-1)",
    "from subprocess import Popen\nPopen(args=['rm', 'config.yaml'], cwd='/root/.hermes')",
    "from hermes_tools import terminal\nterminal('rm -rf ~/.hermes')",
    "from hermes_tools import write_file\nwrite_file('.hermes/extensions.yaml', 'x')",
    "name = 'con' + 'fig.yaml'\nhome = '/root/.her' + 'mes'\nopen(f'{home}/{name}', 'w')",
    "open('/root/.hermes/%s.yaml' % 'config', 'w')",
    "open('/root/{}/config.yaml'.format('.hermes'), 'w')",
    "open(''.join(['/root/', '.her', 'mes', '/config.yaml']), mode='w')",
    "open('lmay.gifnoc/semreh./toor/'[::-1], 'w')",
    "open(bytes.fromhex('2e6865726d65732f78').decode(), 'w')",
    "open(chr(46) + 'hermes/x', 'w')",
    "f = open\nf('.hermes/x', 'w')",
    "list(map(open, ['.hermes/x'], ['w']))",
    "print = __import__('os').remove\nprint('.hermes/x')",
    "import os\nread = os.remove\nread('.hermes/x')",
    "from os import remove as print\nprint('.hermes/x')",
    "import os\ngetattr(os, 'rem' + 'ove')('.hermes/x')",
    "exec(\"import os; os.remove('.hermes/x')\")",
    'eval(\'open(".hermes/x", "w")\')',
    "import os\nos.environ['HERMES_EXT_OFF'] = '1'",
    "import os\nos.environ.update(HERMES_EXT_OFF='1')",
    "import os\nos.replace('src/main.py', '.hermes/x')",
    "from os import replace\nreplace('src/main.py', '.hermes/x')",
    "import os\nlist(map(os.replace, ['src/main.py'], ['.hermes/x']))",
    "import yaml\nyaml.load('!!python/object/apply:os.remove [.hermes/x]', yaml.UnsafeLoader)",
    "from os import environ\nopen(environ['HERMES_HOME'] + '/config.yaml', 'w')",
    "import os\nenv = os.environ\nopen(env['HERMES_HOME'] + '/config.yaml', 'w')",
    "from hermes_constants import get_hermes_home as h\n(h() / 'config.yaml').write_text('')",
    "from hermes_cli.config import save_config\nsave_config({})",
    "import hermes_cli.config as c\nc.set_config_value('extensions.on', '[]')",
    "from hermes_constants import get_config_path\nget_config_path().write_text('')",
    "import runpy\nrunpy.run_module('hermes_ext.cli')",
    "import shutil\nshutil.rmtree(path='../repo')",
    "import shutil\nr = shutil.rmtree\nr('../repo')",
    "import subprocess\ncmd = ['rm', '-rf', '../repo']\nsubprocess.run(cmd)",
    "import os\nos.symlink('/root/.hermes/config.yaml', 'a')\nopen('a', 'w')",
    "import os\nfor n in ['config.yaml', '.env']:\n    os.remove(os.path.join('/root/.hermes', n))",
    "import os\ndef f(p='.hermes/x'):\n    os.remove(p)\nf()",
    "import sqlite3\nsqlite3.connect('/root/.hermes/extensions-state.db')",
    "import yaml\nyaml.dump({}, open('/root/.hermes/config.yaml', 'w'))",
    "open('soft/mine/__init__.py', 'w')",
    "open('hard', 'w')",
    "this is no python > ~/.hermes/config.yaml",
]

PASSED = [
    "print(1)",
    "open('src/new.py', 'w').write('x')",
    "from pathlib import Path\nPath('src/new.py').write_text('x')",
    "import os\nos.remove('src/main.py')",
    "import shutil\nshutil.rmtree('build')",
    "import subprocess\nsubprocess.run(['pytest', '-q'])",
    "import subprocess\nprint(subprocess.run('git status', shell=True, text=True).stdout)",
    "from hermes_tools import terminal, read_file, write_file\n"
    "write_file('src/a.py', read_file('README.md'))\nterminal('make test')",
    "print(open('/root/.hermes/config.yaml').read())",
    "from pathlib import Path\nprint((Path.home() / '.hermes' / 'config.yaml').read_text())",
    "import json, os\nfor n in os.listdir('.hermes/extensions'):\n    print(json.dumps(n))",
    "import yaml\nprint(yaml.safe_load(open('/root/.hermes/config.yaml'))['model'])",
    "def total(xs):\n    return sum(xs)\nprint(total([1, 2]))",
    "import requests\nprint(requests.get('https://example.org').text)",
    "this is no python",
]


@pytest.mark.parametrize("code", REFUSED)
def test_what_would_change_the_rules_is_refused(ground: Ground, code: str) -> None:
    code = code.replace("/root/.hermes", str(ground.home)).replace("/root", str(ground.user))
    assert ground.code(code) is not None


@pytest.mark.parametrize("code", PASSED)
def test_other_code_is_not(ground: Ground, code: str) -> None:
    code = code.replace("/root/.hermes", str(ground.home))
    assert ground.code(code) is None
