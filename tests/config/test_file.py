"""The configuration file: where it is found, and files that are none."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from moonbox.config import Config, find
from moonbox.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_the_nearest_upwards_is_found(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "moonbox.toml").write_text("")
    assert find(deep) == tmp_path / "moonbox.toml"
    (tmp_path / "a" / "moonbox.toml").write_text("")
    assert find(deep) == tmp_path / "a" / "moonbox.toml"


def test_a_folder_of_that_name_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "moonbox.toml").mkdir()
    found = find(tmp_path)
    assert found == tmp_path / "moonbox.toml"
    with pytest.raises(ConfigError, match=f"^{re.escape(str(found))} is a folder; it must be a file$"):
        Config.load(found)


def test_text_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "moonbox.toml"
    path.write_bytes(b'[tools]\nfolders = ["\xff"]\n')
    with pytest.raises(ConfigError, match=r"moonbox\.toml is not UTF-8 text \(line 2\); save it as UTF-8$"):
        Config.load(path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no file .*; `moonbox init` writes one$"):
        Config.load(tmp_path / "moonbox.toml")
