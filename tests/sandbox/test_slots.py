"""Slots that threads take turns in."""

from __future__ import annotations

import sys
import threading

import pytest

from moonbox.runs.slots import Slots


@pytest.mark.parametrize("most", [1, 3])
def test_slots_hold_no_more_than_they_may_and_leave_nobody_waiting(most: int) -> None:
    slots = Slots(most)
    inside, largest, turns = [0], [0], 1000
    counting = threading.Lock()

    def take_turns() -> None:
        for turn in range(turns):
            waiting = slots.enter()
            if waiting is not None:
                if turn % 5 == 0:  # gives up, whether or not its turn has come meanwhile
                    slots.give_up(waiting)
                    continue
                slots.wait(waiting)
            with counting:
                inside[0] += 1
                largest[0] = max(largest[0], inside[0])
            with counting:
                inside[0] -= 1
            slots.leave()

    threads = [threading.Thread(target=take_turns) for _ in range(6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads)
    assert largest[0] <= most
    assert [slots.enter() for _ in range(most)] == [None] * most  # all have come back
    assert slots.enter() is not None
