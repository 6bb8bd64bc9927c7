from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hermes_ext.exceptions import ConfigError
from hermes_ext.hosts.hermes.home.installing import (
    PLUGIN,
    install,
    plugin_off,
    uninstall,
)


def plugins(home: Path) -> dict[str, object]:
    return yaml.safe_load((home / "config.yaml").read_text())["plugins"]


def test_a_new_home_is_made_with_the_plugin_on(tmp_path):
    """Installing makes the home, its config and the extensions folder."""
    home = tmp_path / "new" / "home"

    done = install(home)

    assert done.changed
    assert done.made
    assert plugins(home) == {"enabled": [PLUGIN]}
    assert (home / "extensions").is_dir()
    assert plugin_off(home) is None


def test_the_rest_of_the_config_stays(tmp_path):
    """Other plugins, comments and layout are kept; uninstalling gives the same bytes back."""
    file = tmp_path / "config.yaml"
    before = "# mine\nmodel: {default: m}   # left\nplugins:\n  enabled:\n    - other   # one\n"
    file.write_text(before)

    install(tmp_path)
    assert file.read_text() == before + f"    - {PLUGIN}\n"
    done = uninstall(tmp_path)

    assert done.changed
    assert file.read_text() == before


@pytest.mark.parametrize("act", [install, uninstall])
def test_twice_is_once(tmp_path, act):
    """Doing it again changes no byte and says so."""
    install(tmp_path)
    act(tmp_path)
    before = (tmp_path / "config.yaml").read_bytes()

    assert not act(tmp_path).changed
    assert (tmp_path / "config.yaml").read_bytes() == before


def test_extensions_stay_when_the_plugin_goes(tmp_path):
    """Uninstalling leaves the user's extensions and their settings."""
    mine = tmp_path / "extensions" / "mine"
    mine.mkdir(parents=True)
    (mine / "__init__.py").write_text("")
    (tmp_path / "config.yaml").write_text("extensions:\n  mine: {a: 1}\n")
    install(tmp_path)

    uninstall(tmp_path)

    assert (mine / "__init__.py").exists()
    assert yaml.safe_load((tmp_path / "config.yaml").read_text())["extensions"] == {
        "mine": {"a": 1}
    }


def test_what_hermes_can_read_is_read(tmp_path):
    """A key that stands twice keeps the file from being changed, and Hermes from nothing."""
    text = f"plugins:\n  enabled: [{PLUGIN}]\nextensions:\n  on: [a]\n  on: [b]\n"
    (tmp_path / "config.yaml").write_text(text)
    assert plugin_off(tmp_path) is None
    (tmp_path / "config.yaml").write_text(text.replace("[b]", "[b"))
    off = plugin_off(tmp_path)
    assert off is not None
    assert off.told.startswith("the file does not parse")


def test_a_plugin_that_is_also_disabled_is_freed(tmp_path):
    """`plugins.disabled` wins in Hermes, so installing takes the plugin out of it."""
    (tmp_path / "config.yaml").write_text(
        f"plugins:\n  enabled: [{PLUGIN}]\n  disabled: [x, {PLUGIN}]\n"
    )
    assert plugin_off(tmp_path).key == "plugins.disabled"

    install(tmp_path)

    assert plugins(tmp_path) == {"enabled": [PLUGIN], "disabled": ["x"]}
    assert plugin_off(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    ["plugins:\n  enabled: other\n", "plugins:\n  enabled: {other: true}\n", "plugins: [other]\n"],
)
def test_a_list_of_the_wrong_type_is_refused(tmp_path, text):
    """Hermes enables nothing from such a value: it stays, and what it means is explained."""
    file = tmp_path / "config.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError, match="Hermes enables no plugin at all") as error:
        install(tmp_path)

    assert error.value.line is not None
    assert file.read_text() == text
    assert not (tmp_path / "extensions").exists()


def test_a_home_that_is_a_file_is_refused(tmp_path):
    """A path that is not a folder is named, and nothing is made."""
    (tmp_path / "home").write_text("")

    with pytest.raises(ConfigError, match="not a folder"):
        install(tmp_path / "home")


def test_the_users_own_extensions_folder_is_made(tmp_path):
    """Where the config names another folder for extensions, that one is made."""
    (tmp_path / "config.yaml").write_text("extensions:\n  global_dir: mine\n")

    assert install(tmp_path).folder == tmp_path / "mine"
    assert (tmp_path / "mine").is_dir()
