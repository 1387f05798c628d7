"""Runs the suite on every supported Python: `make test-pythons`, or `make test-pythons ONLY="3.13 3.14"`.

The versions are those of the classifiers in pyproject.toml. An interpreter comes from PATH, from pyenv or from Debian
sid. debootstrap puts sid into a folder, once; what runs there has mount and pid namespaces of its own, so that neither
a mount nor a process outlives it.

Each version works in a copy of the tree with its own environment and compiled modules, below build/pythons. The copies
stay, so that the next run installs and compiles only what has changed.
"""

import argparse
import filecmp
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROOT = Path.cwd()
BUILD = ROOT / "build" / "pythons"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairgate"
CLASSIFIER = "Programming Language :: Python :: "
TOOLS = "test"  # the extra without which no test runs; all others may be missing
SUITES = ("compiled", "plain")
ASK = "import platform, sys; print(*sys.version_info[:2], platform.python_version())"
ASK_BUILD = "from fairgate.sim.run import kind_of_build; print(kind_of_build())"
SUMMARY = re.compile(r"^=*\s*(\d+ \w.*) in ([\d.]+)s", re.MULTILINE)  # pytest's last line
FAILED = re.compile(r"^(?:FAILED|ERROR) .*", re.MULTILINE)
SHOWN = 20  # failures
PATIENCE = 30.0  # seconds between SIGINT and SIGKILL
SETTING_UP = 1800.0  # seconds at most, for debootstrap, and for an environment

# Debian sid.
MIRROR = re.compile(r"\bhttps?://\S+/debian/?(?=\s|$)")
PACKAGES = (
    "ca-certificates,ccache,gcc,git,iproute2,libc6-dev,make,openssl,procps,systemd-standalone-tmpfiles,util-linux"
)
APT = "apt-get -q -o Acquire::Check-Valid-Until=false"  # a mirror may lag behind; signatures are checked all the same
TREE = "/fairgate"  # where a copy of the tree is mounted
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"  # a proxy may have an authority of its own
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL")
NAMESPACES = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
# The shell does not `exec` the last command: as process 1 it collects processes whose parents have died.
ENTER = f"""
root=$1 tree=$2; shift 2
mount --bind "$root" "$root"  # tests make mount namespaces, for which / must be a mount
mount --rbind /dev "$root/dev"
mount -t tmpfs none "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
if test -e {AUTHORITIES}; then mount --bind {AUTHORITIES} "$root{AUTHORITIES}"; fi
mount --bind "$tree" "$root{TREE}"
set +e; chroot "$root" "$@"; exit $?
"""


class NotTested(Exception):
    """Why a version cannot be tested here, in one line."""


class Failed(Exception):
    """What went wrong, in a line, and which tests failed, in more."""


@dataclass
class Place:
    """Where a version of Python is, and how its commands run."""

    name: str
    python: str
    chroot: Path | None = None

    def command(self, tree: Path, *command: str) -> list[str]:
        if self.chroot is None:
            return ["env", f"--chdir={tree}", *command]
        kept = [f"{name}={os.environ[name]}" for name in PASSED_ON if name in os.environ]
        clean = ["env", "-i", f"--chdir={TREE}", "HOME=/root", "PATH=/usr/sbin:/usr/bin", "LANG=C.UTF-8", *kept]
        return [*NAMESPACES, "sh", "-eu", "-c", ENTER, "sh", str(self.chroot), str(tree), *clean, *command]


# Which versions, and where they are.


def project() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def supported() -> list[str]:
    found = [each.removeprefix(CLASSIFIER) for each in project()["classifiers"] if each.startswith(CLASSIFIER)]
    return [version for version in found if re.fullmatch(r"3\.\d+", version)]


def find(version: str) -> Place:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    releases = sorted(pyenv.glob(f"{version}.*"), key=lambda path: [int(n) for n in re.findall(r"\d+", path.name)])
    candidates = [("PATH", shutil.which(f"python{version}") or "")]
    candidates += [("pyenv", str(path / "bin" / "python")) for path in reversed(releases)]
    for name, python in candidates:
        if python and answer([python, "-c", ASK]).startswith(version.replace(".", " ") + " "):
            return Place(name, python)
    return in_sid(version)


def answer(command: Sequence[str]) -> str:
    """What it prints; empty if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def in_sid(version: str) -> Place:
    """The version in Debian sid, which is installed first if need be."""
    if os.geteuid() != 0:
        raise NotTested("neither in PATH nor in pyenv, and only root can install Debian sid")
    if not shutil.which("debootstrap"):
        raise NotTested("neither in PATH nor in pyenv, and debootstrap is not installed")
    if subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode:
        raise NotTested("neither in PATH nor in pyenv, and unshare cannot make namespaces for Debian sid")
    root = CACHE / "debian-sid"
    BUILD.mkdir(parents=True, exist_ok=True)
    place = Place("Debian sid", f"python{version}", root)
    with (BUILD / "debian-sid.log").open("a") as log:
        if not root.exists():
            install_sid(root, log)
        (root / TREE.lstrip("/")).mkdir(exist_ok=True)
        shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
        if not (root / "usr" / "bin" / place.python).exists():
            packages = f"{place.python} {place.python}-dev {place.python}-venv"
            script = f"{APT} update && {APT} -y install --no-install-recommends {packages}"
            quiet = ("env", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script)
            if run(place.command(BUILD, *quiet), log, SETTING_UP):
                raise NotTested(f"Debian sid has no {packages}: see {log.name}; remove {root} to install today's sid")
    return place


def install_sid(root: Path, log: IO[str]) -> None:
    mirror = os.environ.get("MIRROR") or debian_mirror(Path("/etc/apt"))
    if not mirror:
        raise NotTested("apt's sources name no mirror of Debian: set MIRROR to the address of one")
    unfinished = root.with_name("debian-sid.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.parent.mkdir(parents=True, exist_ok=True)
    say(f"installing Debian sid into {root} from {mirror} (about 1 GB, a few minutes)")
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "sid", str(unfinished), mirror]
    if run(command, log, SETTING_UP):
        raise NotTested(f"debootstrap failed: see {log.name}")
    unfinished.rename(root)


def debian_mirror(apt: Path) -> str:
    """The first mirror that apt's sources name; empty if there is none."""
    for path in [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*"))]:
        lines = path.read_text().splitlines() if path.is_file() else []
        for line in lines:
            found = None if line.lstrip().startswith("#") else MIRROR.search(line)
            if found:
                return found.group()
    return ""


# A copy of the tree for each version.


def copy_tree(tree: Path) -> None:
    """Copy what git does not ignore. Equal files are not touched, so that make sees only changes."""
    files = set(listed(ROOT, "--cached", "--others"))
    tree.mkdir(parents=True, exist_ok=True)
    subprocess.run(["git", "init", "--quiet", str(tree)], check=True)  # tests ask git which files there are
    for name in set(listed(tree, "--cached", "--others")) - files:
        (tree / name).unlink()
    for name in files:
        if not (tree / name).exists() or not filecmp.cmp(ROOT / name, tree / name, shallow=False):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    subprocess.run(["git", "add", "--all"], cwd=tree, check=True)


def listed(folder: Path, *which: str) -> list[str]:
    command = ["git", "ls-files", "-z", "--exclude-standard", *which]
    names = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\0")
    return [name for name in names if name and (folder / name).is_file()]


# The run.


def run(command: Sequence[str], log: IO[str], seconds: float) -> int:
    """Run a command; return its exit code. Raises Failed if it takes longer. It leaves no process in its group."""
    log.write(f"\n$ {' '.join(word for word in command if word != ENTER)}\n")
    log.flush()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, start_new_session=True
    )
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)  # so that tests end what they have started
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=PATIENCE)
        raise Failed(f"ended after {seconds / 60:g} minutes: {' '.join(command[-3:])}") from None
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test(version: str, place: Place, options: argparse.Namespace) -> list[str]:
    """Run both suites; return one line for each, and one with what could not be installed. Raises Failed."""
    folder = BUILD / (version if place.chroot is None else f"{version}-sid")
    tree, log_file = folder / "tree", folder / "log"
    copy_tree(tree)
    if not answer(place.command(tree, ".venv/bin/python", "-c", ASK)).startswith(version.replace(".", " ") + " "):
        shutil.rmtree(tree / ".venv", ignore_errors=True)
    make = ["make", "--no-print-directory", f"PYTHON={place.python}"]
    with log_file.open("w+") as log:
        if run(place.command(tree, *make, ".venv/made"), log, SETTING_UP):
            raise Failed("no environment could be made")
        extras, missing = with_wheels(place, tree)
        make += [f"EXTRAS={','.join([TOOLS, *extras])}", f"T={options.t}", f"TESTERS={options.testers}"]
        if run(place.command(tree, *make, "build"), log, options.minutes * 60):
            raise Failed("the build failed")
        built = answer(place.command(tree, ".venv/bin/python", "-c", ASK_BUILD))
        if built != "compiled":
            raise Failed(f"the build made {built or 'nothing'}, not compiled modules")
        lines, failed = [], []
        for suite in SUITES:
            begun = log.seek(0, os.SEEK_END)
            started = time.monotonic()
            code = run(place.command(tree, *make, f"{suite}-suite"), log, options.minutes * 60)
            log.seek(begun)
            said = log.read()
            counts = SUMMARY.findall(said)
            lines.append(f"{suite}: {counts[-1][0] if counts else 'no result'} in {time.monotonic() - started:.0f} s")
            failed += FAILED.findall(said)
            if code or not counts:
                failed = failed or [f"{suite}: no test failed, but make did: see {log_file}"]
    lines.append(f"extras without a wheel: {', '.join(missing) or 'none'}")
    if failed:
        raise Failed("\n".join([*lines, *failed[:SHOWN], *[f"and {len(failed) - SHOWN} more"] * (len(failed) > SHOWN)]))
    return lines


def with_wheels(place: Place, tree: Path) -> tuple[list[str], list[str]]:
    """The extras that can be installed without compiling anything, and the names of the others."""
    extras = project()["optional-dependencies"]
    names = [name for name in extras if name not in (TOOLS, "all", "docs")]
    pip = (".venv/bin/pip", "install", "--dry-run", "--quiet", "--only-binary=:all:")
    found = []
    for name in names:
        if subprocess.run(place.command(tree, *pip, *extras[name]), capture_output=True, check=False).returncode == 0:
            found.append(name)
    return found, [f"{name} ({', '.join(extras[name])})" for name in names if name not in found]


def say(what: str) -> None:
    print(f"fairgate: {what}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.pythons", description=__doc__)
    parser.add_argument("--only", nargs="*", metavar="VERSION", help="these versions, not all")
    parser.add_argument("--t", default="", metavar="PATHS", help="these tests, not all")
    parser.add_argument("--testers", type=int, default=2, metavar="N", help="how many processes run tests (2)")
    parser.add_argument("--minutes", type=float, default=90.0, help="how long a build or a suite may take (90)")
    options = parser.parse_args()
    unknown = set(options.only or ()) - set(supported())
    if unknown:
        parser.error(f"not supported: {', '.join(sorted(unknown))}; supported: {', '.join(supported())}")
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, _: sys.exit(128 + number))  # and so end what runs
    passed, failed = [], []
    for version in options.only or supported():
        try:
            place = find(version)
            say(f"Python {version} ({place.name}): building and testing")
            lines = test(version, place, options)
        except NotTested as why:
            say(f"Python {version}: not tested: {why}")
        except Failed as why:
            failed.append(version)
            say(f"Python {version}: FAILED: {why}")
        else:
            passed.append(version)
            say(f"Python {version}: " + "; ".join(lines))
    say(f"passed on {', '.join(passed) or 'no version'}; failed on {', '.join(failed) or 'none'}")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
