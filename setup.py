"""Builds the hot modules with Cython where that is possible; everywhere else the pure files run.

A module is hot if a .pxd lies beside it. `FAIRGATE_NO_COMPILE=1` skips the build.
"""

import os
import shutil
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, setup

SRC = Path("src")
FLAGS = ["-O2", "-g0", "-ffp-contract=off", "-fno-math-errno"]  # no fused multiply-add: same floats as interpreted
TUNED = [*FLAGS, "-O3"]  # for .pyx files alone: elsewhere it takes longer and gains nothing (docs/notes/setup-time.md)
UTILITY = "fairgate._cyutility"  # Cython's own helpers, in one module instead of a copy in each
DIRECTIVES = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "cdivision": True,
    "annotation_typing": False,
    "auto_pickle": False,
    "show_performance_hints": False,
}
CHECKED = DIRECTIVES | {"boundscheck": True, "wraparound": True}  # for what strangers may have sent
OUTSIDE = (
    "fairgate.live",
    "fairgate.net",
    "fairgate.core.message",
    "fairgate.recovery",
    "fairgate.protocols.bv95",
    "fairgate.protocols.centralised",
)


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


def extensions() -> list[Extension]:
    reason = why_not()
    if reason:
        print(f"fairgate: {reason}, so the pure Python modules will run (slower, otherwise the same)", file=sys.stderr)
        return []
    from Cython.Build import cythonize

    use_ccache()
    pure: list[Extension] = [Extension(UTILITY, ["src/fairgate/_cyutility.c"], extra_compile_args=FLAGS)]
    outside: list[Extension] = []
    for pxd in sorted(SRC.rglob("*.pxd")):
        pyx = pxd.with_suffix(".pyx")
        source = pyx if pyx.exists() else pxd.with_suffix(".py")
        name = ".".join(pxd.relative_to(SRC).with_suffix("").parts)
        kind = outside if name.startswith(OUTSIDE) else pure
        kind.append(Extension(name, [str(source)], extra_compile_args=TUNED if source == pyx else FLAGS))
    made: list[Extension] = []
    for extensions, directives in ((pure, DIRECTIVES), (outside, CHECKED)):
        made += cythonize(
            extensions,
            nthreads=os.cpu_count() or 1,
            compiler_directives=directives,
            build_dir="build/cython",
            shared_utility_qualified_name=UTILITY,
        )
    return sorted(made, key=lambda each: Path(each.sources[0]).stat().st_size, reverse=True)  # the longest first


if __name__ == "__main__":
    setup(ext_modules=extensions(), options={"build_ext": {"parallel": os.cpu_count() or 1}})
