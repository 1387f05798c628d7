"""Compiles the hot modules with Cython where possible; elsewhere the pure Python files run.

A module is hot if there is a .pxd beside it, or if it declares messages or nodes (core/declare.py).
`FAIRGATE_NO_COMPILE=1` skips the compilation.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.modified import newer_group

ROOT = Path(__file__).resolve().parent
STAGED = ROOT / "build" / "staged"  # what Cython compiles: tools/stage.py
sys.path.insert(0, str(ROOT))
# No fused multiply-add, so that floats are the same as in the interpreter.
FLAGS = ["-g0", "-w", "-ffp-contract=off", "-fno-math-errno"]
# Modules in the simulator's inner loop get -O2. For all others -O1 saves compile time and costs about 1 % more
# instructions per simulated event (docs/notes/setup-time.md).
HOT = (
    "fairgate.core.",
    "fairgate.sim.",
    "fairgate.overlay.",
    "fairgate.room.",
    "fairgate.protocols.fair_k",
    "fairgate.protocols.one_line.",
    "fairgate.protocols.e2e.protocol",
    "fairgate.protocols.e2e.replica",
    "fairgate.protocols.non_e2e.protocol",
    "fairgate.protocols.non_e2e.state",
)
# A handler asks whether Python code overrides it, and saves registers for the answer "yes". The dispatcher of messages
# has asked already: with these flags gcc gives it copies of the handlers that neither ask nor save.
CLONED = "fairgate.protocols.fair_k"
CLONING = ("-fipa-cp-clone", "--param=ipa-cp-eval-threshold=1", "--param=ipa-cp-unit-growth=100")
UTILITY = "fairgate._cyutility"  # Cython's helper functions, in one module instead of a copy in each
DIRECTIVES = {
    "language_level": 3,
    "initializedcheck": False,
    "cdivision": True,
    "annotation_typing": False,
    "auto_pickle": False,
    "show_performance_hints": False,
}
UNCHECKED = ("fairgate.sim.", "fairgate.check.", "fairgate.overlay.")  # because no untrusted input gets there
ROOM = "fairgate.room."  # all its numbers are words of a table
NAMED = 8  # modules that a line names
PAUSE = 10.0  # seconds between two lines about the progress


def why_not() -> str:
    """Why nothing can be compiled here, in one line; empty if it can."""
    if os.environ.get("FAIRGATE_NO_COMPILE"):
        return "FAIRGATE_NO_COMPILE is set"
    try:
        import Cython  # noqa: F401
    except ImportError:
        return "Cython is not installed"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "Python.h is not installed"
    from setuptools._distutils.ccompiler import new_compiler
    from setuptools._distutils.sysconfig import customize_compiler

    compiler = new_compiler()
    customize_compiler(compiler)
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder) / "probe.c"
        probe.write_text("int main(void) { return 0; }\n")
        try:
            compiler.compile([str(probe)], output_dir=folder)
        except Exception:
            return "there is no working C compiler"
    return ""


def use_ccache() -> None:
    """Compile through ccache if it is installed, so that checkouts share what they have compiled."""
    compiler = sysconfig.get_config_var("CC")
    if compiler and shutil.which("ccache"):
        os.environ.setdefault("CC", f"ccache {compiler}")


def optimisation(module: str, source: Path) -> list[str]:
    if source.suffix == ".pyx":
        return ["-O3"]
    if module.startswith(CLONED):
        return ["-O2", *CLONING]
    return ["-O2"] if module.startswith(HOT) else ["-O1"]


def directives(module: str) -> dict[str, object]:
    if module.startswith(UNCHECKED):
        return DIRECTIVES | {"boundscheck": False, "wraparound": False}
    return DIRECTIVES | ({"infer_types": True} if module.startswith(ROOM) else {})


def extensions() -> list[Extension]:
    reason = why_not()
    if reason:
        say(f"{reason}, so the pure Python modules will run (slower, otherwise the same)")
        return []
    from Cython.Build import cythonize

    from tools.stage import stage

    use_ccache()
    made: list[Extension] = []
    with working_in(STAGED):
        modules = stage(ROOT, STAGED)
        extensions = [
            Extension(name, [str(source)], extra_compile_args=[*FLAGS, *optimisation(name, source)])
            for name, source in modules
        ]
        extensions.append(Extension(UTILITY, ["src/fairgate/_cyutility.c"], extra_compile_args=[*FLAGS, "-O1"]))
        extensions.sort(key=lambda each: sorted(directives(each.name)))
        for _, group in groupby(extensions, key=lambda each: directives(each.name)):
            alike = list(group)
            made += cythonize(
                alike,
                nthreads=os.cpu_count() or 1,
                compiler_directives=directives(alike[0].name),
                include_path=["src"],
                build_dir=str(ROOT / "build" / "cython"),
                shared_utility_qualified_name=UTILITY,
            )
        remove_others({each.name for each in made})
        return sorted(made, key=lambda each: Path(each.sources[0]).stat().st_size, reverse=True)  # largest first


class Compile(build_ext):
    """Compiles what is out of date, and says which modules these are and how many are done."""

    def build_extensions(self) -> None:
        names = [each.name for each in self.extensions if self.is_stale(each)]
        say(announcement(names, len(self.extensions)))
        self.stale, self.done = set(names), 0
        self.lock, self.said = threading.Lock(), time.monotonic()
        super().build_extensions()

    def is_stale(self, extension: Extension) -> bool:
        needed = [*extension.sources, *extension.depends]
        return bool(self.force) or newer_group(needed, self.get_ext_fullpath(extension.name), "newer")

    def build_extension(self, ext: Extension) -> None:
        super().build_extension(ext)
        with self.lock:  # several are compiled at once
            self.done += ext.name in self.stale
            if time.monotonic() - self.said >= PAUSE:
                self.said = time.monotonic()
                say(f"compiled {self.done} of {len(self.stale)}")


def announcement(stale: Sequence[str], total: int) -> str:
    if not stale:
        return f"all {total} modules are compiled already"
    names = [name.removeprefix("fairgate.") for name in stale[:NAMED]]
    more = f" and {len(stale) - NAMED} more" if len(stale) > NAMED else ""
    return f"compiling {len(stale)} of {total} modules: {', '.join(names)}{more}"


def say(what: str) -> None:
    print(f"fairgate: {what}", file=sys.stderr, flush=True)


def remove_others(names: set[str]) -> None:
    """Delete what was compiled from modules that are no longer hot: Python would prefer it to their sources."""
    for found in (ROOT / "src").rglob("*.so"):
        parts = found.relative_to(ROOT / "src").parts
        if ".".join([*parts[:-1], parts[-1].partition(".")[0]]) not in names:
            found.unlink()


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)


if __name__ == "__main__":
    setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": Compile},
        options={"build_ext": {"parallel": os.cpu_count() or 1}},
    )
