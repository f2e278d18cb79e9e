"""The economy of a run: what its calls would have put through the model's context, beside what the script did."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from moonbox.values import to_jsonable

if TYPE_CHECKING:
    from collections.abc import Callable

    from moonbox.audit.records import Call, Run

__all__ = ["Economy", "economy_of"]


@dataclass(frozen=True, slots=True)
class Economy:
    """Tokens, as a counter estimates them."""

    calls: int
    direct: int
    """Every call's name, arguments and result, as if the model had made the calls one by one."""
    script: int
    """The script and the answer that the model was shown."""
    answer: int
    """The answer alone."""

    @property
    def spared(self) -> int:
        """How many tokens the script spared; negative where direct calls would have been cheaper."""
        return self.direct - self.script

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "spared": self.spared}


def economy_of(run: Run, answer: str, count: Callable[[str], int]) -> Economy:
    """The economy of a run whose model was shown this answer."""
    direct = sum(count(_as_direct_call(call)) for call in run.calls)
    tokens = count(answer)
    return Economy(len(run.calls), direct, count(run.source) + tokens, tokens)


def _as_direct_call(call: Call) -> str:
    result = call.result if call.error is None else f"{call.error.code}: {call.error.message}"
    message = [call.tool, to_jsonable(call.arguments), to_jsonable(result)]
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))
