"""An office with 600 tools in 30 groups, and errands that need one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moonbox import Tool
from trials.tasks import MARK

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ERRANDS", "Errand", "office", "records"]

GROUPS = {
    "billing": "invoice payment refund subscription",
    "logistics": "shipment carrier route customs_form",
    "warehouse": "pallet shelf stock_count forklift",
    "people": "employee absence contract payslip",
    "recruiting": "candidate interview vacancy offer_letter",
    "travel": "flight hotel_stay rental_car visa",
    "calendar": "meeting reminder holiday room_booking",
    "mail": "message attachment mailbox signature",
    "chat": "channel thread reaction poll",
    "files": "folder document revision share_link",
    "wiki": "article comment template glossary_term",
    "code": "repository branch pull_request release",
    "builds": "pipeline build_job artifact runner",
    "cloud": "server volume network snapshot",
    "monitoring": "alert dashboard metric incident",
    "security": "certificate access_key audit_event vulnerability",
    "support": "ticket escalation macro satisfaction_survey",
    "sales": "lead opportunity quote territory",
    "marketing": "campaign newsletter landing_page ad_group",
    "social": "post follower mention hashtag",
    "catalog": "product price_list discount category",
    "procurement": "supplier purchase_order tender delivery_note",
    "finance": "budget ledger_entry tax_return bank_account",
    "legal": "lawsuit patent trademark nda",
    "facilities": "building desk elevator cleaning_job",
    "fleet": "vehicle driver fuel_card inspection",
    "training": "course lesson exam diploma",
    "events": "conference speaker badge sponsor",
    "maps": "place geofence itinerary elevation_profile",
    "iot": "sensor gateway firmware reading",
}
STATES = ("open", "done", "late")
PER_PAGE = 10


@dataclass(frozen=True)
class Errand:
    """One question that one tool of the 600 answers."""

    name: str
    question: str
    form: str
    group: str
    thing: str
    verb: str
    words: str
    """What a model searches for."""
    lua: str
    rhai: str
    """The script that calls the tool."""
    needs: tuple[str, ...]
    """What a model must have read before it can write that script."""
    answer: Callable[[list[dict[str, Any]]], Any]

    @property
    def prompt(self) -> str:
        return f"{self.question}\nEnd your reply with one line: {MARK} and then JSON, {self.form}."

    @property
    def tool(self) -> str:
        return f"{self.group}.{_tool_name(self.verb, self.thing)}"

    def expected(self) -> Any:
        return self.answer(records(self.thing))

    def script(self, language: str) -> str:
        return self.lua if language == "lua" else self.rhai


def office() -> list[Tool[..., Any]]:
    """All 600 tools."""
    return [made for group, things in GROUPS.items() for thing in things.split() for made in _tools(group, thing)]


def records(thing: str) -> list[dict[str, Any]]:
    """What the office knows of a kind of thing: 25 to 34 records."""
    seed = sum(map(ord, thing))
    return [
        {
            "id": number,
            "title": f"{thing.replace('_', ' ')} {number}",
            "state": STATES[(seed + number * number) % 3],
            "cost": float((seed * 7 + number * 31) % 400),
            "owner": ("ann", "bob", "cem", "dora")[(seed + number) % 4],
        }
        for number in range(1, 26 + seed % 10)
    ]


def _tool_name(verb: str, thing: str) -> str:
    return f"{verb}_{_plural(thing)}" if verb == "list" else f"{verb}_{thing}"


def _plural(thing: str) -> str:
    return f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}es" if thing[-1] in "sx" else f"{thing}s"


def _tools(group: str, thing: str) -> list[Tool[..., Any]]:
    text, whole = {"type": "string"}, {"type": "integer"}
    fields = {"title": text, "state": {"enum": list(STATES)}, "cost": {"type": "number"}, "owner": text}
    record = {"type": "object", "properties": {"id": whole, **fields}, "required": ["id", *fields]}
    page = {"items": {"type": "array", "items": record}, "next_cursor": {"type": ["string", "null"]}}
    key, words = f"{thing}_id", thing.replace("_", " ")

    def one(args: dict[str, Any]) -> dict[str, Any]:
        return next(item for item in records(thing) if item["id"] == args[key])

    def many(args: dict[str, Any]) -> dict[str, Any]:
        found = [item for item in records(thing) if args.get("state") in (None, item["state"])]
        start = int(args.get("cursor") or 0)
        more = start + PER_PAGE < len(found)
        return {"items": found[start : start + PER_PAGE], "next_cursor": str(start + PER_PAGE) if more else None}

    def made(verb: str, description: str, parameters: dict[str, Any], required: list[str], **more: Any) -> Any:
        schema = {"type": "object", "properties": parameters, "required": required}
        name = _tool_name(verb, thing)
        return Tool.from_schema(name=name, namespace=group, description=description, parameters=schema, **more)

    return [
        made(
            "list",
            f"List every {words} of {group}, {PER_PAGE} a page.",
            {"state": fields["state"], "cursor": text},
            [],
            call=many,
            returns={"type": "object", "properties": page, "required": list(page)},
        ),
        made("get", f"Get one {words} of {group}.", {key: whole}, [key], call=one, returns=record),
        made("create", f"Create one {words} in {group}.", fields, ["title"], call=dict, returns=record),
        made("update", f"Change one {words} of {group}.", {key: whole, **fields}, [key], call=one, returns=record),
        made("delete", f"Delete one {words} from {group}.", {key: whole}, [key], call=lambda args: None),
    ]


def _late(things: list[dict[str, Any]]) -> int:
    return len([item for item in things if item["state"] == "late"])


ERRANDS = (
    Errand(
        "late_shipments",
        "How many of our shipments are late?",
        "a whole number",
        "logistics",
        "shipment",
        "list",
        "late shipments",
        'return #pages(tools.logistics.list_shipments, {state = "late"})',
        'pages("logistics::list_shipments", #{state: "late"}).len()',
        ("list_shipments", "state", "late"),
        _late,
    ),
    Errand(
        "refund_cost",
        "What did refund number 17 cost?",
        "a number",
        "billing",
        "refund",
        "get",
        "refund cost",
        "return tools.billing.get_refund{refund_id = 17}.cost",
        "billing::get_refund(#{refund_id: 17}).cost",
        ("get_refund", "refund_id", "cost"),
        lambda things: things[16]["cost"],
    ),
    Errand(
        "open_incidents",
        "Who owns the open incidents of our monitoring, and how many has each?",
        "an object with the number for each owner",
        "monitoring",
        "incident",
        "list",
        "open incidents monitoring",
        'return list.count_by(pages(tools.monitoring.list_incidents, {state = "open"}), "owner")',
        'pages("monitoring::list_incidents", #{state: "open"}).count_by("owner")',
        ("list_incidents", "state", "open", "owner"),
        lambda things: {
            owner: len([item for item in things if (item["owner"], item["state"]) == (owner, "open")])
            for owner in {item["owner"] for item in things if item["state"] == "open"}
        },
    ),
    Errand(
        "dearest_purchase",
        "Which purchase order costs most?",
        "its id, a whole number",
        "procurement",
        "purchase_order",
        "list",
        "purchase order",
        'return list.max_by(pages(tools.procurement.list_purchase_orders), "cost").id',
        'pages("procurement::list_purchase_orders").max_by("cost").id',
        ("list_purchase_orders", "cost", "id"),
        lambda things: max(things, key=lambda item: float(item["cost"]))["id"],
    ),
    Errand(
        "certificate_state",
        "Is the security certificate number 8 open, done or late?",
        'an object such as {"state": "done"}',
        "security",
        "certificate",
        "get",
        "security certificate",
        "return {state = tools.security.get_certificate{certificate_id = 8}.state}",
        "#{state: security::get_certificate(#{certificate_id: 8}).state}",
        ("get_certificate", "certificate_id", "state"),
        lambda things: {"state": things[7]["state"]},
    ),
    Errand(
        "exam_costs",
        "What do all exams of our training cost together?",
        "a number",
        "training",
        "exam",
        "list",
        "exams of training",
        'return list.sum(pages(tools.training.list_exams), "cost")',
        'pages("training::list_exams").sum("cost")',
        ("list_exams", "cost"),
        lambda things: sum(item["cost"] for item in things),
    ),
)
