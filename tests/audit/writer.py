"""A program that writes runs without end and prints each id once its run is written."""

from __future__ import annotations

import os
import sys

from moonbox.audit.records import Call, Run, Usage
from moonbox.audit.sinks import open_sink
from moonbox.values import pack


def run_of(id: str, size: int) -> Run:
    calls = tuple(Call(n, f"tool{n % 3}", {"n": n}, packed=pack("r" * size), duration=0.001) for n in range(1, 9))
    return Run(id, "return 1", values=(id,), calls=calls, usage=Usage(wall=0.01), output="o" * size, repl=id[:3])


def main(where: str, name: str, count: int) -> None:
    os.write(1, b"opening\n")
    sink = open_sink(where)
    for n in range(count):
        id = f"{name}-{n}"
        sink.write(run_of(id, size=n % 7 * 700))
        os.write(1, f"{id}\n".encode())
    sink.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
