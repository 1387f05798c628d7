"""Other projects' tests of their locks, run against fairgate: `make test-peers`.

The source distributions are downloaded with pip into build/peers. An adapter for each project (adapters/) puts gates in
the place of its locks when the tests run, and a list (suites/) says which tests apply. Nothing of these projects is in
the repository.

Each suite prints one line. The command fails if an outcome is not as listed, or if no suite could run.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

from tests.peers.adapters.gates import OPENED
from tests.peers.lists import Suite, judge, load_all
from tests.peers.plugin import OUTCOMES, SUITE

PROJECT = Path(__file__).parents[2]
BUILD = PROJECT / "build" / "peers"
DOWNLOAD_SECONDS = 300
STARTED_BY_TESTS = "import tests.peers.adapters.{name}\n"


class Unavailable(Exception):
    """A suite cannot run here; the message says why."""


def download(package: str, sha256: str) -> Path:
    """The unpacked source distribution of `name==version`."""
    name, _, version = package.partition("==")
    archives = BUILD / "archives"
    pattern = f"{name.replace('-', '[-_]')}-{version}.tar.gz"
    if not list(archives.glob(pattern)):
        archives.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", name]
        try:
            ended = subprocess.run(
                [*command, "--dest", str(archives), package],
                check=False,
                capture_output=True,
                text=True,
                timeout=DOWNLOAD_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"pip did not download {package} within {DOWNLOAD_SECONDS} s") from None
        if ended.returncode or not list(archives.glob(pattern)):
            said = (ended.stderr or ended.stdout).strip().splitlines() or ["it said nothing"]
            raise Unavailable(f"pip cannot download {package}: {said[-1]}")
    (archive,) = archives.glob(pattern)
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    if found != sha256:
        archive.unlink()
        raise Unavailable(f"{archive.name} has the SHA-256 {found}, not {sha256}: it was deleted")
    folder = BUILD / archive.name.removesuffix(".tar.gz")
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=BUILD) as fresh, tarfile.open(archive) as packed:
            packed.extractall(fresh, filter="data")
            (Path(fresh) / folder.name).rename(folder)
    return folder


def sources(suite: Suite) -> list[Path]:
    """The folders of its packages, the one with the tests first."""
    if not suite.standard:
        return [download(package, sha256) for package, sha256 in suite.packages.items()]
    folder = Path(os.__file__).parent / "test"
    if not (folder / suite.files[0]).exists():
        version = ".".join(map(str, sys.version_info[:2]))
        raise Unavailable(
            f"this Python has no test package: install libpython{version}-testsuite, or use pyenv's Python"
        )
    return [folder]


def lay_out(suite: Suite, folders: list[Path], run: Path) -> list[str]:
    """Copy the tests into a package of their own. Returns their names, relative to `run`."""
    package = run / "suite"
    package.mkdir()
    (package / "__init__.py").touch()
    (run / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name in suite.files + suite.beside:
        shutil.copy(folders[0] / name, package)
    if suite.children:
        (run / "sitecustomize.py").write_text(STARTED_BY_TESTS.format(name=suite.adapter), encoding="utf-8")
    return [f"suite/{Path(name).name}" for name in suite.files]


def run_suite(suite: Suite, verbose: bool) -> dict[str, str]:
    """The outcomes of its tests."""
    folders = sources(suite)
    with tempfile.TemporaryDirectory(prefix="peers") as temporary:
        run = Path(temporary)
        tests = lay_out(suite, folders, run)
        outcomes, gates = run / "outcomes.json", run / "gates"
        gates.mkdir(mode=0o700)
        imports = [run, run / "suite", PROJECT, *(folder / path for folder in folders for path in suite.path)]
        env = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, imports)),
            "FAIRGATE_DIR": str(gates),
            "TMPDIR": str(run),
            SUITE: suite.name,
            OUTCOMES: str(outcomes),
            OPENED: str(run / "opened"),
        }
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore",
                   "--timeout-method=signal", "-p", "tests.peers.plugin", *tests]  # fmt: skip
        with subprocess.Popen(
            command, cwd=run, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
        ) as process:
            try:
                said, _ = process.communicate(timeout=suite.seconds)
            except subprocess.TimeoutExpired:
                said = f"it did not end within {suite.seconds:g} s"
            finally:
                end_all(process.pid)
        if verbose:
            print(said)
        if not outcomes.exists():
            raise Unavailable(f"its tests cannot start: {said.strip()[-300:]}")
        found: dict[str, str] = json.loads(outcomes.read_text(encoding="utf-8"))
        if process.returncode:
            found["the run"] = (said.strip().splitlines() or [""])[-1]
        return found


def end_all(group: int) -> None:
    """Whatever the tests have left running."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=(__doc__ or "").partition("\n")[0])
    suites = {suite.name: suite for suite in load_all()}
    parser.add_argument("--only", choices=suites, action="append", help="run this suite; may be repeated")
    parser.add_argument("--reasons", action="store_true", help="print why tests do not apply")
    parser.add_argument("--verbose", action="store_true", help="print what pytest says")
    given = parser.parse_args()
    signal.signal(signal.SIGINT, lambda *_: sys.exit(128 + signal.SIGINT))  # and so end what runs
    ran = wrong = 0
    for name in given.only or suites:
        try:
            verdict = judge(suites[name], run_suite(suites[name], given.verbose))
        except Unavailable as why:
            print(f"{name}: not run, because {why}", flush=True)
            continue
        ran += 1
        wrong += len(verdict.complaints)
        print(verdict.line(name), *(f"  {each}" for each in verdict.complaints), sep="\n", flush=True)
        if given.reasons:
            print(*(f"  {count} not applicable: {why}" for why, count in verdict.reasons.items()), sep="\n", flush=True)
    if not ran:
        print("no suite could run")
    return int(wrong > 0 or not ran)


if __name__ == "__main__":
    sys.exit(main())
