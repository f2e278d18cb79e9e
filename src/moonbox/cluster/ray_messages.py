"""What a front end and its Ray process say to each other: typed messages in MessagePack."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from moonbox.cluster.wire import Count, Line, Message, Name

# To the Ray process


class CallActor(Message):
    """Call a method of the actor of that name, which is made where there is none; number 0 wants no answer."""

    number: int
    kind: str
    """Its class, as module:name."""
    name: str
    given: list[Any]
    """What its class is called with."""
    method: str
    arguments: list[Any]


class CallFunction(Message):
    """Call the function of a tool, `module:name`, on a node."""

    number: int
    tool: str
    function: str
    arguments: dict[str, Any]
    about: dict[str, Any]
    """What the function finds in its Context."""
    retries: int


class AskNodes(Message):
    """What the host of each node says of itself."""

    number: int


class ReserveRoom(Message):
    """How many workers a Sandbox has on each node, and under "" how many wait for one; those it left out are none."""

    sandbox: str
    workers: dict[str, int]


class HostGone(Message):
    """The host of a node cannot be reached where it was; it may be elsewhere by now."""

    node: str


FrontEndMessage = CallActor | CallFunction | AskNodes | ReserveRoom | HostGone


# From the Ray process


class RayLoaded(Message):
    """Ray is imported; the cluster can be joined."""


class RayRefused(Message):
    """The cluster cannot be joined; the process ends."""

    message: Line


class NodeAddress(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A node, and where its host takes connections."""

    node: Name
    ip: Name
    port: Annotated[int, Meta(ge=1, le=65_535)]
    token: Annotated[bytes, Meta(max_length=64)]


class NodeProblem(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A node that cannot run workers, and why."""

    node: Name
    message: Line


class NodesChanged(Message):
    """All living nodes; the first one says that the cluster is joined."""

    nodes: Annotated[list[NodeAddress], Meta(max_length=10_000)]
    problems: Annotated[list[NodeProblem], Meta(max_length=10_000)]
    starting: Count
    """Nodes whose hosts have not answered yet."""


class RayAnswer(Message):
    """The answer to a request, as MessagePack of what the request is for."""

    number: Count
    data: Annotated[bytes, Meta(max_length=1 << 26)]


class RayFailure(Message):
    """A request that failed."""

    number: Count
    message: Line


RayProcessMessage = RayLoaded | RayRefused | NodesChanged | RayAnswer | RayFailure


# Within answers


class MediumOnNode(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A medium within the result of a tool."""

    address: Name
    data: bytes
    type: Name
    name: Name


class ToolFailure(Struct, frozen=True, forbid_unknown_fields=True):
    """How a tool failed on a node; its data is JSON."""

    message: str
    code: str
    retryable: bool
    data: str
    detail: str


class ToolOutcome(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What came of a call on a node: its result as JSON, and the media in it."""

    result: bytes
    media: Annotated[list[MediumOnNode], Meta(max_length=1_000)]
    failure: ToolFailure | None


class FrontEndReport(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a front end says of itself."""

    name: Name
    figures: Annotated[dict[Name, dict[Name, float]], Meta(max_length=20)]
