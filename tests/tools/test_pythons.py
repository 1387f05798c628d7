"""`make test-pythons`, in a small project whose interpreters and suites are shell scripts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tools.pythons import debian_mirror

ROOT = Path(__file__).parents[2]
PROJECT = """
[project]
classifiers = [
    "Programming Language :: Python :: 3", "Programming Language :: Python :: 3.97",
    "Programming Language :: Python :: 3.98",
]
[project.optional-dependencies]
columns = ["pyarrow>=15"]
loops = ["uvloop"]
all = ["small[columns,loops]"]
test = ["pytest"]
"""
MAKEFILE = """
.PHONY: build compiled-suite plain-suite
.venv/made:
	@mkdir -p .venv/bin && cp $(PYTHON) .venv/bin/python && cp pip .venv/bin && touch $@
build:
	@echo "extras $(EXTRAS)"
compiled-suite plain-suite:
	@echo "testing $(T) with $(TESTERS)" && sh ./$@
"""
INTERPRETER = """#!/bin/sh
case "$2" in *version_info*) echo {answer};; *) cat built;; esac
"""
PROGRAMS = ("sh", "make", "git", "env", "cat", "cp", "mkdir", "touch", "sleep", "true")


class Project:
    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "project", folder / "bin"
        self.folder.mkdir()
        self.bin.mkdir()
        for program in PROGRAMS:
            (self.bin / program).symlink_to(shutil.which(program) or "")
        self.write("pyproject.toml", PROJECT)
        self.write("Makefile", MAKEFILE)
        self.write(".gitignore", "build\n.venv\nbuilt\n")
        self.write("compiled-suite", "echo '3 passed, 1 skipped in 1.25s (0:00:01)'\n")
        self.write("plain-suite", "echo '2 passed in 0.50s'\n")
        self.write("pip", '#!/bin/sh\ncase "$*" in *pyarrow*) exit 1;; esac\n')
        (self.folder / "pip").chmod(0o755)
        subprocess.run(["git", "init", "--quiet"], cwd=self.folder, check=True)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def add_interpreter(self, path: Path, answer: str, built: str = "compiled") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(INTERPRETER.format(answer=answer).replace("cat built", f"echo {built}"))
        path.chmod(0o755)

    def run(self, *arguments: str) -> tuple[int, str]:
        environment = {
            "PATH": str(self.bin),
            "HOME": str(self.folder.parent),
            "PYTHONPATH": str(ROOT),
            "MAKEFLAGS": " -- T=other",
        }
        command = [sys.executable, "-m", "tools.pythons", *arguments]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    @property
    def tree(self) -> Path:
        return self.folder / "build" / "pythons" / "3.97" / "tree"

    @property
    def log(self) -> str:
        return (self.tree.parent / "log").read_text()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def one_python(project: Project) -> Project:
    project.add_interpreter(project.bin / "python3.97", "3 97 3.97.4")
    return project


def test_figures_of_each_version_and_what_could_not_be_installed(one_python: Project) -> None:
    code, said = one_python.run("--t", "tests/room", "--testers", "5")
    assert code == 0
    assert re.sub(r" in \d+ s", " in N s", said) == (
        "fairgate: Python 3.97 (PATH): building and testing\n"
        "fairgate: Python 3.97: compiled: 3 passed, 1 skipped in N s; plain: 2 passed in N s; "
        "extras without a wheel: columns (pyarrow>=15)\n"
        f"fairgate: Python 3.98: not tested: neither in PATH nor in pyenv, and {why_not_sid()}\n"
        "fairgate: passed on 3.97; failed on none\n"
    )
    assert "extras test,loops\n" in one_python.log
    assert one_python.log.count("testing tests/room with 5\n") == 2


def why_not_sid() -> str:
    return "only root can install Debian sid" if os.geteuid() else "debootstrap is not installed"


def test_it_fails_if_no_version_could_be_tested(project: Project) -> None:
    code, said = project.run()
    assert code == 1
    assert said.count("not tested") == 2
    assert said.endswith("passed on no version; failed on none\n")


def test_a_failed_suite_is_reported_with_its_tests(one_python: Project) -> None:
    one_python.write(
        "plain-suite", "echo 'FAILED tests/a.py::test_b - why'; echo '1 failed, 1 passed in 0.50s'; exit 1\n"
    )
    code, said = one_python.run("--only", "3.97")
    assert code == 1
    assert "Python 3.97: FAILED: compiled: 3 passed, 1 skipped" in said
    assert "\nFAILED tests/a.py::test_b - why\n" in said


@pytest.mark.parametrize("script", ["exit 1\n", "true\n", "echo '3 passed in 1.0s'; exit 1\n"])
def test_a_suite_without_a_result_fails(one_python: Project, script: str) -> None:
    one_python.write("compiled-suite", script)
    code, said = one_python.run("--only", "3.97")
    assert (code, "3.97: FAILED" in said) == (1, True)


def test_plain_modules_do_not_pass_for_compiled_ones(project: Project) -> None:
    project.add_interpreter(project.bin / "python3.97", "3 97 3.97.4", built="plain")
    code, said = project.run("--only", "3.97")
    assert code == 1
    assert "FAILED: the build made plain, not compiled modules" in said


def test_a_suite_that_takes_too_long_is_ended(one_python: Project) -> None:
    one_python.write("compiled-suite", "echo $$ > pid; exec sleep 1000\n")
    code, said = one_python.run("--only", "3.97", "--minutes", "0.05")
    assert code == 1
    assert "FAILED: ended after 0.05 minutes: " in said
    assert not Path(f"/proc/{(one_python.tree / 'pid').read_text().strip()}").exists()


def test_the_copy_follows_the_tree_and_leaves_equal_files_alone(one_python: Project) -> None:
    one_python.write("old", "")
    one_python.write("built", "ignored")
    assert one_python.run("--only", "3.97")[0] == 0
    assert (one_python.tree / "old").exists()
    assert not (one_python.tree / "built").exists()
    before = (one_python.tree / "Makefile").stat().st_mtime_ns
    (one_python.folder / "old").unlink()
    one_python.write("Makefile", MAKEFILE)
    one_python.write("plain-suite", "echo '7 passed in 0.50s'\n")
    code, said = one_python.run("--only", "3.97")
    assert code == 0
    assert "plain: 7 passed" in said
    assert not (one_python.tree / "old").exists()
    assert (one_python.tree / "Makefile").stat().st_mtime_ns == before


def test_an_environment_of_an_interpreter_that_is_gone_is_made_again(one_python: Project) -> None:
    assert one_python.run("--only", "3.97")[0] == 0
    (one_python.tree / ".venv" / "bin" / "python").write_text("#!/nowhere\n")
    assert one_python.run("--only", "3.97")[0] == 0


def test_pyenv_gives_its_newest_release_if_path_has_none_that_runs(project: Project, tmp_path: Path) -> None:
    project.add_interpreter(project.bin / "python3.97", "")  # one of pyenv's shims for a version that is not selected
    for release in ("3.97.4", "3.97.10"):
        folder = tmp_path / ".pyenv" / "versions" / release / "bin"
        project.add_interpreter(folder / "python", f"3 97 {release}")
    code, said = project.run("--only", "3.97")
    assert code == 0
    assert "Python 3.97 (pyenv): " in said
    assert f"PYTHON={tmp_path}/.pyenv/versions/3.97.10/bin/python" in project.log


def test_an_unsupported_version_is_refused(project: Project) -> None:
    code, said = project.run("--only", "3.10")
    assert code == 2
    assert said.endswith("error: not supported: 3.10; supported: 3.97, 3.98\n")


SOURCES = {
    "sources.list": "# deb http://old.example/debian sid main\ndeb [arch=all] http://one.example/debian sid main\n",
    "sources.list.d/debian.sources": "Types: deb\nURIs: https://two.example/debian/\nSuites: sid\n",
    "sources.list.d/security.list": "deb http://one.example/debian-security bookworm main\n",
}


@pytest.mark.parametrize(
    ("names", "mirror"),
    [
        (["sources.list", "sources.list.d/debian.sources"], "http://one.example/debian"),
        (["sources.list.d/debian.sources"], "https://two.example/debian/"),
        (["sources.list.d/security.list"], ""),
        ([], ""),
    ],
)
def test_the_mirror_is_the_one_of_apt(tmp_path: Path, names: list[str], mirror: str) -> None:
    (tmp_path / "sources.list.d").mkdir()
    for name in names:
        (tmp_path / name).write_text(SOURCES[name])
    assert debian_mirror(tmp_path) == mirror


def test_wheels_and_continuous_integration_have_the_versions_of_the_classifiers() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    found = re.findall(r"Python :: (3\.\d+)\"", text)
    assert found[0] == tomllib.loads(text)["project"]["requires-python"].removeprefix(">=")
    assert tomllib.loads(text)["tool"]["cibuildwheel"]["build"] == " ".join(
        f"cp{each.replace('.', '')}-*" for each in found
    )
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert f"python: {found}".replace("'", '"') in workflow
