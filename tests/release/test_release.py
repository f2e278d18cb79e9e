"""What is published: it builds, holds what it should, and works where nothing else is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import moonbox
from tests.environments import INSTALL_SECONDS, checked, install, make_environment, run
from tests.long import only_long

from .environments import ROOT, SMOKE_OF_EXTRAS, build, lowest, project, smoke

pytestmark = pytest.mark.timeout(300)  # they make environments


@pytest.fixture(scope="module")
def package() -> frozenset[str]:
    """The files of the package, as they were before it is built."""
    files = (ROOT / "src" / "moonbox").rglob("*")
    return frozenset(
        str(file.relative_to(ROOT / "src"))
        for file in files
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so"  # built in place
    )


@pytest.fixture(scope="module")
def built(package: frozenset[str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the lowest versions that are allowed, and nothing else."""
    return make_environment(tmp_path_factory.mktemp("empty") / "venv", *lowest(project()["project"]["dependencies"]))


def test_the_wheel_holds_everything_in_the_package_and_nothing_else(
    built: tuple[Path, Path], package: frozenset[str]
) -> None:
    with zipfile.ZipFile(built[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert package - names == set()
    compiled = {name for name in names if re.fullmatch(r"moonbox/worker/(?:_native|_wire)\.[\w-]+\.so", name)}
    assert {name for name in names - package - compiled if not (ROOT / "src" / name).exists()} == set()
    assert ("-none-any" in built[1].name) == (not compiled)
    kinds = {name.rpartition(".")[2] for name in names}
    assert {"py", "lua", "toml", "typed"} <= kinds


def test_the_sdist_holds_what_its_tests_need(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    wanted = ["pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "mkdocs.yml", "CONTRIBUTING.md"]
    wanted += ["SECURITY.md", "requirements-build.lock", ".github/workflows/release.yml", "js/package-lock.json"]
    assert [name for name in wanted if name not in names] == []
    assert {"docs/index.md", "tests/release/smoke.py", "examples/demo.py"} <= names
    sources = {f"src/moonbox/worker/{name}.c" for name in ("_native", "_wire")}
    assert {"hatch_build.py", "requirements.lock", "requirements-dev.lock", *sources} <= names
    assert [name for name in names if name.endswith(".so")] == []
    assert [name for name in names if re.search(r"(^|/)(\.venv|\.cache|__pycache__)(/|$)", name)] == []


@only_long
def test_a_build_without_a_compiler_says_so_and_works(built: tuple[Path, Path], empty: Path, tmp_path: Path) -> None:
    """From the sdist, as pip builds it; `moonbox doctor` knows the reason afterwards."""
    command = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(tmp_path)]
    with tarfile.open(built[0]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    [source] = tmp_path.glob("moonbox-*/")
    env = {"PATH": str(Path(sys.executable).parent), "CC": ""}
    done = run([*command, str(source)], timeout=INSTALL_SECONDS, env=env)
    printed = done.stdout + done.stderr
    [wheel] = tmp_path.glob("*.whl")
    assert wheel.name == f"moonbox-{moonbox.__version__}-py3-none-any.whl"
    assert "built without its native parts" in printed and "no C compiler" in printed
    install(empty, "--reinstall-package", "moonbox", str(wheel))
    assert smoke(empty, tmp_path / "work") == "all is well\n"
    told = json.loads(checked([str(empty.with_name("moonbox")), "doctor", "--json"], cwd=tmp_path / "work"))
    assert told["native"]["detail"] == (
        "workers run in Python: the native parts were not built: no C compiler was found; "
        "install one and Python's headers, then install moonbox again"
    )


@only_long
def test_the_lowest_versions_that_are_allowed_work(built: tuple[Path, Path], empty: Path, tmp_path: Path) -> None:
    install(empty, "--reinstall-package", "moonbox", str(built[1]))
    assert smoke(empty, tmp_path / "work") == "all is well\n"


@only_long
def test_the_newest_versions_that_are_allowed_work(built: tuple[Path, Path], tmp_path: Path) -> None:
    python = make_environment(tmp_path / "venv", str(built[1]))
    assert smoke(python, tmp_path / "work") == "all is well\n"


@only_long
def test_the_optional_parts_work_with_the_lowest_versions_that_are_allowed(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    extras = project()["project"]["optional-dependencies"]
    parts = ("scripts", "web", "pdf", "http", "mcp")
    needed = {line for part in parts for line in extras[part]}  # the core is left free: mcp asks for a later pydantic
    python = make_environment(tmp_path / "venv", f"{built[1]}[serve]", *lowest(sorted(needed)))
    assert smoke(python, tmp_path / "work", SMOKE_OF_EXTRAS) == "all is well\n"


def test_the_version_has_one_place() -> None:
    assert moonbox.__version__ == metadata.version("moonbox")
    assert "version" in project()["project"]["dynamic"]
    assert project()["tool"]["hatch"]["version"]["path"] == "src/moonbox/_version.py"
    places = [
        file
        for file in (*(ROOT / "src").rglob("*.py"), ROOT / "pyproject.toml", ROOT / "mkdocs.yml")
        if f'"{moonbox.__version__}"' in file.read_text("utf-8")
    ]
    assert [file.name for file in places] == ["_version.py"]
    for name in ("package.json", "package-lock.json"):
        assert json.loads((ROOT / "js" / name).read_text("utf-8"))["version"] == moonbox.__version__


def test_the_changelog_has_the_version_and_its_date() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(moonbox.__version__)} - \d{{4}}-\d\d-\d\d", headings[1])


def test_every_range_has_both_ends() -> None:
    extras = project()["project"].get("optional-dependencies", {})
    groups = {"core": project()["project"]["dependencies"], **extras}
    for name, dependencies in groups.items():
        for dependency in dependencies:
            if dependency.startswith("moonbox["):
                continue
            assert re.search(r">=[\w.]+,<[\w.]+", dependency), f"{name}: {dependency}"


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock", "requirements-build.lock"])
def test_every_locked_requirement_has_its_version_and_hashes(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    assert "://" not in text  # where packages come from is the machine's choice
    requirements = text.replace("\\\n", "").splitlines()
    assert len(requirements) > 20
    wanted = re.compile(r"[\w.-]+==[\w.]+( ; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+ *")
    assert [line for line in requirements if not wanted.fullmatch(line)] == []


def test_everything_that_make_installs_is_checked_against_a_hash() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", "")
    installs = [line for line in makefile.splitlines() if "pip install" in line]
    assert len(installs) > 3
    own = "--no-deps --no-build-isolation --editable ."
    assert [line for line in installs if "--require-hashes" not in line and not line.endswith(own)] == []


def test_every_extra_that_messages_name_is_there() -> None:
    """MissingExtra tells people to install `moonbox[extra]`."""
    named: set[str] = set()
    for file in (ROOT / "src" / "moonbox").rglob("*.py"):
        text = file.read_text("utf-8")
        named |= set(re.findall(r'MissingExtra\("[\w.-]+", "([\w-]+)"', text))
        named |= set(re.findall(r'extra="([\w-]+)"', text))
    assert named
    assert named - set(project()["project"].get("optional-dependencies", {})) == set()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@only_long
def test_the_native_parts_are_built_into_a_folder(tmp_path: Path) -> None:
    """As `make sanitize` does it."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "hatch_build.py"), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.rglob("*.so"))) == 2
