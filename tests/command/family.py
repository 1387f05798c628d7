"""`python family.py HOW... -- WORDS` runs a command as a relative of this process, and ends with its exit code.

Each HOW is a step away from the family:

    close     the relative has none of the inherited descriptors but the standard ones
    session   it has a session and a process group of its own, without terminal
    orphan    its parent is dead before it begins: a daemon
    pids      it is in a pid namespace of its own, with a /proc of its own (only for root)
    aged      FAIRGATE_HELD says that the holder was started a tick earlier, as if its pid had been used again
"""

from __future__ import annotations

import os
import sys

HELD = "FAIRGATE_HELD"


def main(words: list[str]) -> int:
    split = words.index("--")
    steps, command = words[:split], words[split + 1 :]
    if "close" in steps:
        os.closerange(3, 1024)
    if "aged" in steps:
        name, _, start = os.environ[HELD].rpartition(":")
        os.environ[HELD] = f"{name}:{int(start) - 10_000_000}"
    if "pids" in steps:
        command = ["unshare", "--pid", "--fork", "--mount-proc", *command]
    done, say = os.pipe()
    go, let_go = os.pipe()
    between = os.fork()
    if between == 0:
        relative = os.fork()
        if relative:
            os.close(say)
            os.close(let_go)
            if "orphan" in steps:
                os._exit(0)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(relative, 0)[1]))
        if "session" in steps:
            os.setsid()
        os.close(let_go)
        os.read(go, 1)  # until its parent is dead, if that is to be
        code = os.spawnvp(os.P_WAIT, command[0], command)
        os.write(say, bytes([code]))
        os._exit(code)
    os.close(say)
    if "orphan" in steps:
        os.waitpid(between, 0)
    os.close(let_go)
    return os.read(done, 1)[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
