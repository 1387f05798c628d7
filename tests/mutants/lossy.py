"""Random walks on a lossy network that catch mutants."""

from fairgate.scenario.manual import Violation
from fairgate.walks.lossy import lossy_walks
from fairgate.walks.stacks import Stack


def caught_lossy(stack: Stack, seeds: int = 1000, crash: bool = False, live: bool = True) -> str:
    """The name of the property that lossy walks of the mutant break, or "" if it survives."""
    try:
        lossy_walks(stack, range(seeds), crash, live)
    except Violation as broken:
        return str(broken).split(":", maxsplit=1)[0]
    except Exception as error:  # a mutant may also fail one of its own assertions
        return type(error).__name__
    return ""
