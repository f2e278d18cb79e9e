"""The wire between host and worker.

A frame is one byte of type, four bytes of length (little endian), and the payload.

    host → worker   trusted: payloads are marshal data, made and read by the same interpreter, unless noted
        CONFIGURE   the environment: names of tools and functions, values, features, limits
        RUN         what RUN_HEAD has (number, seed), then the source
        ANSWERS     [(call id, ok, value or error), …] for some of the calls under way; MessagePack for a native worker
        HALT        the run must end instead of being answered: one byte, the reason
        INPUTS      [[name, value], …]: globals of the next run; MessagePack for a native worker
        GLOBALS     tell what the scripts have defined
        CHECK       tell what is wrong with a script that is not run: its source
        INSPECT     tell what a script has that waits for a call: the numbers of the call and of the run (LOOK)
    worker → host   assumed hostile: payloads are JSON or raw text, bounded, checked before use, never marshal
        READY       the layers of the jail: lines of name, 0 or 1, detail, with tabs between
        OUTPUT      printed bytes
        CALLS       [[id, target, [arguments]], …]
        CANCEL      [id, …]
        KEPT        before VALUE or DONE, one byte: 1 the run's value, 2 its output, 3 both stay there under a name
        VALUE       a run ended well: what it spent (SPENT), then the JSON list of its values
        VALUE_KEPT  the same as KEPT with 1 and VALUE
        DONE        how else a run ended
        DEFINED     [[name, kind], …]
        CHECKED     the same as DONE, of a script that was not run
        INSPECTED   frames with their locals, and globals; see runs/held_worker.py. After it the worker may be of no use

On a second socket the host may send STOP = (run number, reason) at any time; the worker sends nothing there.
"""

from __future__ import annotations

import marshal
import struct

TYPE_CHECKING = False  # `typing` itself takes a worker's start longer than everything else here
if TYPE_CHECKING:
    from typing import Any

HEADER = struct.Struct("<BI")
STOP = struct.Struct("<IB")
RUN_HEAD = struct.Struct("<IQ")
LOOK = struct.Struct("<QI")
RUN_FRAME = struct.Struct("<BIIQ")  # HEADER and RUN_HEAD
SPENT = struct.Struct("<qqdq")  # operations (-1: not counted), memory, seconds of processor time, bytes of output cut

CONFIGURE, RUN, ANSWERS, HALT, GLOBALS, CHECK, INSPECT, INPUTS = range(1, 9)
READY, OUTPUT, CALLS, CANCEL, DONE, DEFINED, VALUE, KEPT, VALUE_KEPT, CHECKED, INSPECTED = range(16, 27)

REASON_TIME, REASON_CANCELLED, REASON_CALLS = 1, 2, 3


def frame(kind: int, payload: bytes) -> bytes:
    return HEADER.pack(kind, len(payload)) + payload


def pack(kind: int, value: Any) -> bytes:
    """A frame for the worker."""
    return frame(kind, marshal.dumps(value))


def pack_run(source: bytes, number: int, seed: int) -> bytes:
    return RUN_FRAME.pack(RUN, RUN_HEAD.size + len(source), number, seed) + source


def chunk_name(number: int) -> str:
    """What errors and tracebacks call the script of that run."""
    return "script" if number == 1 else f"script#{number}"
