"""Lays out the tree that Cython compiles, below build/: hand-tuned modules as they are, declared ones expanded.

The tree has the paths of the source tree (src/fairgate/...), and Cython runs inside it, so that a traceback from
compiled code names the source file. Unchanged files keep their modification time, so only changed ones are compiled.
"""

import os
import sys
from pathlib import Path


def stage(root: Path, out: Path) -> list[tuple[str, Path]]:
    """Write the tree; return (module, path of its source below `out`) for every module to compile."""
    sys.path.insert(0, str(root / "src"))
    os.environ["FAIRGATE_PURE"] = "1"
    try:
        from tools.c_types import Project, with_finals, with_results
        from tools.expand import Expanded
        from tools.tables import HOT, PACKAGE, HotModule

        project = Project(root / "src")
        expanded: dict[str, Expanded | HotModule] = {name: Expanded(project, name) for name in project.declared}
        for module in HOT:
            name = f"{PACKAGE}.{module}"
            expanded[name] = HotModule(root / "src", name)
    finally:
        del os.environ["FAIRGATE_PURE"]
        sys.path.pop(0)
    found: list[tuple[str, Path]] = []
    for path in sorted((root / "src").rglob("*.py")):
        name = ".".join(path.relative_to(root / "src").with_suffix("").parts)
        place = path.relative_to(root)
        if name in expanded:
            keep(out / place, expanded[name].py())
            keep(out / place.with_suffix(".pxd"), expanded[name].pxd_text())
            found.append((name, place))
        elif path.with_suffix(".pxd").exists():
            keep(out / place.with_suffix(".pxd"), path.with_suffix(".pxd").read_text())
            twin = path.with_suffix(".pyx")
            source = twin if twin.exists() else path
            text = source.read_text()
            keep(out / source.relative_to(root), with_finals(with_results(text)) if source is path else text)
            found.append((name, source.relative_to(root)))
        elif path.name == "__init__.py":
            keep(out / place, path.read_text())
    return found


def keep(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
