"""Builds the hot modules with Cython where that is possible; everywhere else the pure files run.

A module is hot if a .pxd lies beside it, or if it declares messages or nodes (core/declare.py).
`FAIRGATE_NO_COMPILE=1` skips the build.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setuptools import Extension, setup

ROOT = Path(__file__).resolve().parent
STAGED = ROOT / "build" / "staged"  # what Cython compiles: tools/stage.py
sys.path.insert(0, str(ROOT))
FLAGS = ["-g0", "-w", "-ffp-contract=off", "-fno-math-errno"]  # no fused multiply-add: floats as interpreted
# What runs in the simulator's inner loop. -O1 everywhere else takes two thirds of the time to compile, and the
# instructions per event hardly rise (docs/notes/setup-time.md).
HOT = (
    "fairgate.core.",
    "fairgate.sim.",
    "fairgate.overlay.",
    "fairgate.protocols.e2e.",
    "fairgate.protocols.non_e2e.",
)
UTILITY = "fairgate._cyutility"  # Cython's own helpers, in one module instead of a copy in each
DIRECTIVES = {
    "language_level": 3,
    "initializedcheck": False,
    "cdivision": True,
    "annotation_typing": False,
    "auto_pickle": False,
    "show_performance_hints": False,
}
UNCHECKED = DIRECTIVES | {"boundscheck": False, "wraparound": False}
INSIDE = ("fairgate.sim.", "fairgate.check.", "fairgate.overlay.")  # nothing that a stranger sends reaches these


def why_not() -> str:
    """One line that says why nothing can be compiled here, or nothing."""
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
    """Where it is installed, what another checkout has compiled is not compiled again."""
    compiler = sysconfig.get_config_var("CC")
    if compiler and shutil.which("ccache"):
        os.environ.setdefault("CC", f"ccache {compiler}")


def optimisation(module: str, source: Path) -> str:
    if source.suffix == ".pyx":
        return "-O3"
    return "-O2" if module.startswith(HOT) else "-O1"


def extensions() -> list[Extension]:
    reason = why_not()
    if reason:
        print(f"fairgate: {reason}, so the pure Python modules will run (slower, otherwise the same)", file=sys.stderr)
        return []
    from Cython.Build import cythonize

    from tools.stage import stage

    use_ccache()
    made: list[Extension] = []
    with working_in(STAGED):
        modules = stage(ROOT, STAGED)
        for inside, directives in ((False, DIRECTIVES), (True, UNCHECKED)):
            extensions = [
                Extension(name, [str(source)], extra_compile_args=[*FLAGS, optimisation(name, source)])
                for name, source in modules
                if name.startswith(INSIDE) == inside
            ]
            if not inside:
                extensions.append(Extension(UTILITY, ["src/fairgate/_cyutility.c"], extra_compile_args=[*FLAGS, "-O1"]))
            made += cythonize(
                extensions,
                nthreads=os.cpu_count() or 1,
                compiler_directives=directives,
                include_path=["src"],
                build_dir=str(ROOT / "build" / "cython"),
                shared_utility_qualified_name=UTILITY,
            )
        return sorted(made, key=lambda each: Path(each.sources[0]).stat().st_size, reverse=True)  # the longest first


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
    setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count() or 1}})
