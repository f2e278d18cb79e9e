"""Tool: a named function of the host, with everything that a call of it needs."""

from __future__ import annotations

import functools
import json
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, Protocol, get_args, overload

from moonbox.errors import ToolDefinitionError, ToolError, UsageError
from moonbox.failures import FAILURES, Failures
from moonbox.limits import Limits
from moonbox.retry import Retry
from moonbox.schema.bounds import own_copy
from moonbox.schema.learned import completed
from moonbox.schema.tree import SchemaNode
from moonbox.suggest import unknown
from moonbox.tools.binding import Binder
from moonbox.tools.docstrings import read_docstring
from moonbox.tools.function import CallPlan, Context, injections, inspect_function, is_async, plan_call
from moonbox.tools.hints import HintOptions, Hints
from moonbox.tools.naming import check_name
from moonbox.tools.results import ResultSchema, convert
from moonbox.values import ValueLimits

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    Q = ParamSpec("Q")
    R = TypeVar("R", default=Any, covariant=True)
    S = TypeVar("S")
else:  # without the defaults, which only type checkers need: `Tool` alone is a tool of any signature
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R", covariant=True)


ASKS_IN_SCRIPTS = "asks_in_scripts"
"""In `meta`: if the tool needs approval, code mode lets scripts call it, which then wait."""
ALSO_DIRECT = "also_direct"
"""In `meta`: code mode shows the tool to the model too, beside scripts, as `keep_visible` does."""
Policy = Literal["auto", "approve", "direct"]
_POLICIES: tuple[str, ...] = get_args(Policy)
Placement = Literal["caller", "node"]
_PLACEMENTS: tuple[str, ...] = get_args(Placement)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tool(Generic[P, R]):
    """A named function of the host: schema, description, policy, hints, and the callable behind it.

    Make one with `@tool`, `Tool.from_function` or `Tool.from_schema`. Calling the Tool calls the function as
    it is, with the function's own signature; scripts' calls go through `bind`, `invoke` and `convert_result`.
    """

    name: str
    call: Callable[P, R] = field(repr=False)
    description: str = field(default="", repr=False)
    parameters: dict[str, Any] = field(repr=False)
    """JSON Schema of type object."""
    returns: dict[str, Any] | None = field(default=None, repr=False)
    """JSON Schema of the result; None when nothing is known of it."""
    namespace: str | None = None
    policy: Policy = "auto"
    """auto: scripts may call it; approve: a person must agree to each call; direct: never offered to scripts."""
    hints: Hints = field(default_factory=Hints, repr=False)
    timeout: float | None = field(default=None, repr=False)
    """Seconds that one call may take."""
    max_concurrency: int | None = field(default=None, repr=False)
    """How many calls of it may run at the same moment."""
    parse_json: bool = field(default=True, repr=False)
    """Make data of text that is JSON, where there is no result schema."""
    validate_result: bool = field(default=False, repr=False)
    """Refuse a result that does not fit `returns`; otherwise a result of another type is a note in the run's record."""
    failures: Failures | None = field(default=None, repr=False)
    """return: a result that is nothing but a failure, such as `{"error": "…"}`, is data; raise: it is an error. None:
    as the Sandbox says."""
    errors: Mapping[type[BaseException], str] = field(default_factory=lambda: types.MappingProxyType({}), repr=False)
    """The codes of failures for exceptions of the tool's own, by type; a subclass has its base's."""
    retry: Retry | None = field(default=None, repr=False)
    """When a call is tried again; only of a tool that may be called twice with the same arguments."""
    undo: Callable[..., Any] | str | None = field(default=None, repr=False)
    """Takes a call back: a function, or the name of a tool. Its parameters are `arguments` and `result` of the call, or
    fields of them."""
    placement: Placement = field(default="caller", repr=False)
    """node: on a cluster, calls run on a node of it, which imports the function. Elsewhere it makes no difference."""
    thread: bool = field(default=True, repr=False)
    """False: it only computes, for microseconds: it is called in the thread that drives the run, where its time cannot
    be cut, and a call of it costs less."""
    execution: bool = field(default=False, repr=False)
    """It runs scripts itself, so that scripts must not reach it."""
    is_async: bool = field(default=False, repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)
    meta: Mapping[str, Any] = field(default_factory=lambda: types.MappingProxyType({}), repr=False)
    answered_by_caller: bool = field(default=False, repr=False)
    """It has no function here: the program that runs the script, or handles the model's call, answers its calls."""
    unbound: bool = field(default=False, repr=False)
    """It was defined in a class body and needs an instance: `instance.method` is the usable tool."""
    plan: CallPlan = field(default_factory=lambda: CallPlan(None), repr=False)
    binder: Binder = field(default=None, repr=False)  # type: ignore[assignment]  # set in __post_init__
    """Binds arguments to its parameters; made of them where none is given."""

    path: str = field(init=False, repr=False)
    """Its identity in a toolbox: `github.create_issue`, or the name alone."""

    def __post_init__(self) -> None:
        check_name(self.name)
        if self.namespace is not None:
            check_name(self.namespace, "namespace")
        object.__setattr__(self, "hints", Hints.of(self.hints))
        for problem in _problems(self):
            raise ToolDefinitionError(f"tool {self.name!r}: {problem}")
        tags: Any = self.tags
        object.__setattr__(self, "tags", (tags,) if isinstance(tags, str) else tuple(tags))
        object.__setattr__(self, "path", f"{self.namespace}.{self.name}" if self.namespace else self.name)
        if not self.binder or self.binder.parameters is not self.parameters:
            parameters = self.parameters or {"type": "object", "properties": {}}
            object.__setattr__(self, "binder", Binder(parameters, self.plan.converter, self.plan.spread))
            object.__setattr__(self, "parameters", parameters)

    @property
    def is_repeatable(self) -> bool:
        """Whether it may be called again with the same arguments where it is not known what became of a call."""
        return self.hints.repeatable or self.retry is not None

    @staticmethod
    def from_function(function: Callable[Q, S], **overrides: Any) -> Tool[Q, S]:
        """A tool from a function, method, partial or callable object; keyword arguments replace what was found."""
        if isinstance(function, Tool):
            return function.with_(**overrides) if overrides else function
        from moonbox.tools import schema

        inspected = inspect_function(function)
        doc = read_docstring(inspected.doc)
        name = overrides.pop("name", None) or inspected.name
        if name == "<lambda>":
            raise ToolDefinitionError("a lambda has no name; give one with name=")
        parameters, converter = schema.build(inspected, doc, name)
        fields: dict[str, Any] = {
            "description": doc.text,
            "returns": schema.returned(inspected.returns),
            "is_async": inspected.is_async,
            "unbound": inspected.unbound,
        }
        fields.update({key: value for key, value in _checked(overrides).items() if value is not None})
        plan = plan_call(inspected, converter)
        tool = Tool(name=name, call=function, parameters=parameters, plan=plan, **fields)
        tool._look_like(function)
        return tool

    @classmethod
    def from_schema(
        cls,
        *,
        name: str,
        description: str = "",
        parameters: Mapping[str, Any] | None = None,
        call: Callable[..., Any] | None = None,
        returns: Mapping[str, Any] | None = None,
        policy: Policy = "auto",
        hints: Hints | HintOptions | None = None,
        **more: Any,
    ) -> Tool:
        """A tool from any JSON Schema and a callable that takes one dict (and, where annotated, the Context).

        Without a callable it is a client-side tool: a run that calls it pauses, and its caller gives the answer.
        """
        by_caller = call is None
        function: Any = _nobody if call is None else call
        _check_takes_a_dict(name, function)
        tool = cls(
            name=name,
            description=description,
            parameters=own_copy(name, "parameters", parameters) or {},
            call=function,
            returns=own_copy(name, "returns", returns),
            policy=policy,
            hints=Hints.of(hints),
            is_async=is_async(function),
            answered_by_caller=by_caller,
            plan=CallPlan(None, injections(function)),
            **_checked(more),
        )
        try:
            tool.binder.check()
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"tool {name!r}: {error}") from None
        return tool

    def with_(self, **changes: Any) -> Tool[P, R]:
        """A copy with some fields changed."""
        changed = replace(self, **_checked(changes, also=("name", "parameters", "call")))
        if wrapped := getattr(self, "__wrapped__", None):
            changed._look_like(wrapped)
        return changed

    def with_shape(self, shape: dict[str, Any] | None) -> Tool[P, R]:
        """The tool with what was learned of its results, where it does not say what they are."""
        returns = completed(self.returns, shape)
        return self if returns is self.returns else self.with_(returns=returns)

    def bind(self, arguments: Any = None, *, first_index: int = 0, is_json_call: bool = False) -> dict[str, Any]:
        """Named, positional or no arguments as one validated dict; raises ArgumentError naming every problem.

        `first_index` is the number that the caller's language gives an array's first element in messages;
        `is_json_call` says that the arguments are JSON, for which scripts' shorthands do not exist.
        """
        return self.binder.bind(arguments, self.path, first_index, is_json_call=is_json_call)

    def invoke(self, bound: dict[str, Any], context: Context | None = None, *, first_index: int = 0) -> Any:
        """Call with what `bind` returned; an asynchronous tool gives an awaitable."""
        by_name, args = self.plan.by_name, list[Any]()
        try:
            kwargs = None if by_name is None else by_name(bound)
        except ValueError:  # below it is explained, or converted in another way
            kwargs = None
        if kwargs is None:
            args, kwargs = self.plan.arguments(bound, context, self.path, self.binder, first_index)
        return self.call(*args, **kwargs)

    def convert_result(self, value: Any, limits: ValueLimits | None = None) -> Any:
        """The plain value that crosses to the script; raises ToolError where it cannot or is too large."""
        limits = limits or ValueLimits.of(Limits(), allow_nan=True)
        return convert(value, self, limits, self.failures or "return").value

    @property
    def accepted(self) -> SchemaNode:
        """The parameters' schema as it is judged."""
        return self.binder.accepted

    @functools.cached_property
    def returned(self) -> SchemaNode:
        """The schema of its results; one that says nothing when nothing is known of them."""
        return SchemaNode(self.returns)

    @functools.cached_property
    def result_schema(self) -> ResultSchema | None:
        """What results are compared with; None where nothing is known of them."""
        if self.returns is None:
            return None
        return ResultSchema(self.path, self.returned, own=self.plan.converter is not None)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """In the order in which positional arguments fill them."""
        return self.binder.order

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.call(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Tool[P, R]: ...
    @overload
    def __get__(self: Tool[Concatenate[Any, Q], R], instance: object, owner: type | None = None) -> Tool[Q, R]: ...
    @overload
    def __get__(self, instance: object, owner: type | None = None) -> Tool[P, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None or not self.unbound:
            return self
        return replace(self, call=types.MethodType(self.call, instance), unbound=False)

    def _look_like(self, function: Callable[..., Any]) -> None:
        """Take on the function's name and docstring, so that tools read like the functions they are."""
        for attribute in functools.WRAPPER_ASSIGNMENTS:
            if attribute != "__annotations__" and hasattr(function, attribute):
                object.__setattr__(self, attribute, getattr(function, attribute))
        object.__setattr__(self, "__wrapped__", function)


@overload
def tool(function: Callable[Q, S], /) -> Tool[Q, S]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    namespace: str | None = None,
    policy: Policy = "auto",
    hints: Hints | HintOptions | None = None,
    timeout: float | None = None,
    max_concurrency: int | None = None,
    parse_json: bool = True,
    validate_result: bool = False,
    failures: Failures | None = None,
    errors: Mapping[type[BaseException], str] | None = None,
    retry: Retry | None = None,
    undo: Callable[..., Any] | str | None = None,
    placement: Placement = "caller",
    thread: bool = True,
    execution: bool = False,
    tags: tuple[str, ...] = (),
    meta: Mapping[str, Any] | None = None,
) -> _Decorator: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a function a Tool: `@tool`, or `@tool(name=…, policy=…, hints={"read_only": True}, …)`."""
    if function is not None:
        return Tool.from_function(function, **options)
    _checked(options, also=("name",))
    return lambda decorated: Tool.from_function(decorated, **options)


def _nobody(arguments: dict[str, Any]) -> Any:
    """Stands for the function of a client-side tool."""
    raise ToolError(
        "this tool is answered by the client, and nothing asks the client here; a program answers it with "
        "client_calls, CodeMode.handle or repl.start",
        code="client_unavailable",
    )


class _Decorator(Protocol):
    """What `@tool(…)` gives: it makes a Tool of a function, with the function's signature."""

    def __call__(self, function: Callable[Q, S], /) -> Tool[Q, S]: ...


_OPTIONS = (
    *("description", "returns", "namespace", "policy", "hints", "timeout", "max_concurrency"),
    *("parse_json", "validate_result", "failures", "errors", "retry", "undo", "placement", "thread", "execution"),
    *("tags", "meta"),
)


def _problems(tool: Any) -> Iterator[str]:
    """What is wrong with the fields of a tool, which may be of any type."""
    for name, choices in (("policy", _POLICIES), ("failures", FAILURES), ("placement", _PLACEMENTS)):
        chosen = getattr(tool, name)
        if chosen not in choices and (name, chosen) != ("failures", None):
            yield unknown(name, str(chosen), choices)
    if tool.placement == "node" and not _is_importable(tool.call):
        yield "placement 'node' needs a function at the top of a module that nodes can import"
    if tool.answered_by_caller and tool.policy == "approve":
        yield "policy 'approve' needs a function"
    if not callable(tool.call):
        yield f"{tool.call!r} is not callable"
    if not tool.thread and (tool.is_async or tool.timeout or tool.max_concurrency or tool.policy == "approve"):
        yield (
            "thread=False is for a function that only computes: not for an async one, and not with timeout, "
            "max_concurrency or policy 'approve'"
        )
    for kind, code in tool.errors.items():
        if not (isinstance(kind, type) and issubclass(kind, BaseException) and isinstance(code, str) and code):
            yield (
                "errors must have a code for each class of exceptions, "
                f"such as {{LookupError: 'not_found'}}, not {{{kind!r}: {code!r}}}"
            )
    if not _is_positive(tool.timeout, (int, float)):
        yield f"timeout must be a number of seconds above 0, not {tool.timeout!r}"
    if not _is_positive(tool.max_concurrency, int):
        yield f"max_concurrency must be a whole number of at least 1, not {tool.max_concurrency!r}"
    if tool.undo is not None and not isinstance(tool.undo, str) and not callable(tool.undo):
        yield f"undo must be a function or the name of a tool, not {tool.undo!r}"
    if tool.retry is not None and not isinstance(tool.retry, Retry):
        yield f"retry must be a Retry, not {tool.retry!r}"
    if tool.retry is not None and not (tool.hints.repeatable or tool.plan.takes_context):
        yield (
            "retry needs a tool that may be called twice: say so with "
            'hints={"read_only": True} or {"idempotent": True}, or take a Context and pass on its idempotency_key'
        )
    if not tool.binder or tool.binder.parameters is not tool.parameters:
        yield from _schema_problems(tool.parameters)


def _schema_problems(schema: Any) -> Iterator[str]:
    """Why arguments cannot be bound to a schema."""
    if not isinstance(schema, dict):
        yield f"parameters must be a JSON Schema (a dict), not {type(schema).__name__}"
    elif (kinds := SchemaNode(schema).kinds) is not None and "object" not in kinds:
        yield f"parameters must be a JSON Schema of type object, not {'|'.join(sorted(kinds))}"


def _check_takes_a_dict(name: str, call: Callable[..., Any]) -> None:
    try:
        accepted = signature(call)
    except (ValueError, TypeError):  # built in: it says nothing about itself
        return
    try:
        accepted.bind({}, **{item.name: None for item, _ in injections(call)})
    except TypeError:
        raise ToolDefinitionError(
            f"tool {name!r}: call must take the arguments as one dict, and at most the Context beside it"
        ) from None


def _checked(options: dict[str, Any], also: tuple[str, ...] = ()) -> dict[str, Any]:
    known = (*also, *_OPTIONS)
    for option in options:
        if option == "function":
            raise UsageError("unknown tool option 'function'; the function is given as call=")
        if option not in known:
            raise UsageError(unknown("tool option", option, known))
    return options


def _is_importable(function: Any) -> bool:
    """Whether another process can find it by the names of its module and itself."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "<")
    return module not in (None, "__main__") and "<" not in name


def _is_positive(value: Any, kind: Any) -> bool:
    """Whether it is a positive number of that kind, or None."""
    return value is None or (isinstance(value, kind) and not isinstance(value, bool) and 0 < value < float("inf"))


def fingerprint(tool: Tool) -> dict[str, str]:
    """A hash for each part that a person's decision may rest on."""
    parts: dict[str, Any] = {
        "description": tool.description,
        "parameters": tool.parameters,
        "result": tool.returns,
        "hints": tool.hints.to_dict(),
        "origin": dict(tool.meta),
        "code": _code(tool.call),
    }
    return {name: _hash(part) for name, part in parts.items()}


def changed_parts(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """The names of the parts that differ."""
    return tuple(name for name in after if before.get(name) != after[name])


def _hash(part: Any) -> str:
    import hashlib  # it loads OpenSSL

    text = json.dumps(part, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _code(call: Any) -> list[str]:
    """What the callable is, as far as that is known: the same function defined again is the same."""
    inner = getattr(call, "__wrapped__", None) or getattr(call, "func", None) or getattr(call, "__func__", None) or call
    code = getattr(inner, "__code__", None)
    name = f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
    if code is None:
        return [name]
    return [name, code.co_code.hex(), *(repr(item) for item in code.co_consts if not hasattr(item, "co_code"))]
