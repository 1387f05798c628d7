"""One process that repeatedly contends for a gate: `python -m fairgate.lab.contender KIND K PORT STAY SECONDS FILE`.

STAY is how long it stays inside, in seconds. A tilde in front makes the times exponential, with that mean.
It prints "ready" after it has been inside once, and then reads a line with the start time (monotonic ns). For each
entry it writes (asked, entered, left) to FILE, as 64-bit integers.
"""

import random
import signal
import sys
import time
from array import array
from pathlib import Path

from fairgate.lab.rivals import open_gate

RANDOM = "~"


def contend(kind: str, k: int, port: int, stay: str, seconds: float) -> "array[int]":
    inside, is_random = float(stay.removeprefix(RANDOM)), stay.startswith(RANDOM)
    gate = open_gate(kind, k, port)
    gate.acquire()
    gate.release()
    print("ready", flush=True)
    begin = int(sys.stdin.readline())
    before, spent = gate.messages(), time.process_time_ns()
    while time.monotonic_ns() < begin:
        time.sleep(0.001)
    end = begin + int(seconds * 1e9)
    times: array[int] = array("q")
    now = time.monotonic_ns
    while True:
        asked = now()
        if times and asked >= end:  # it enters at least once, even if it starts late
            break
        gate.acquire()
        entered = now()
        if inside:
            time.sleep(random.expovariate(1 / inside) if is_random else inside)
        left = now()
        gate.release()
        times.extend((asked, entered, left))
    print(gate.messages() - before, time.process_time_ns() - spent, flush=True)
    sys.stdin.readline()  # stay until the others have finished too
    gate.close()
    return times


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C the parent ends it
    kind, k, port, stay, seconds, file = sys.argv[1:]
    times = contend(kind, int(k), int(port), stay, float(seconds))
    Path(file).write_bytes(times.tobytes())


if __name__ == "__main__":
    main()
