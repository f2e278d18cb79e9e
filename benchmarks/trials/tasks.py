"""Office tasks over the shop: the questions, the right answers from the data, and the calls of direct calling."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from trials.world import Shop, value

__all__ = ["TASKS", "Calls", "Task", "read_answer", "same"]

Call = tuple[str, dict[str, Any]]
Calls = Generator[list[Call], list[Any], None]
"""Yields the calls of one turn and receives their results."""
MARK = "ANSWER:"


@dataclass(frozen=True)
class Task:
    """One task. The right answer follows from a fresh shop."""

    name: str
    question: str
    form: str
    """What the answer looks like."""
    answer: Callable[[Shop], Any]
    calls: Callable[[Shop], Calls]
    """The calls of a model that calls tools directly and makes no mistake, turn by turn."""
    changes: Callable[[Shop], None] = lambda shop: None
    """What the task changes in the shop."""

    @property
    def prompt(self) -> str:
        return f"{self.question}\nEnd your reply with one line: {MARK} and then JSON, {self.form}."

    def expected(self) -> Any:
        return self.answer(Shop())

    def left_as_expected(self, shop: Shop) -> bool:
        """Whether the shop is as it should be after the task."""
        other = Shop()
        self.changes(other)
        return (shop.users, shop.orders, shop.products) == (other.users, other.orders, other.products)


def read_answer(text: str) -> Any:
    """The JSON after the mark in the last line that has one. Raises ValueError where there is none."""
    lines = [line for line in text.splitlines() if MARK in line]
    if not lines:
        raise ValueError(f"the reply has no line with {MARK}")
    return json.loads(lines[-1].rpartition(MARK)[2].strip().strip("`*"))


def same(found: Any, expected: Any) -> bool:
    """Whether both are the same JSON; numbers may differ by less than a cent."""
    if isinstance(expected, dict):
        return (
            isinstance(found, dict)
            and found.keys() == expected.keys()
            and all(same(found[key], expected[key]) for key in expected)
        )
    if isinstance(expected, list):
        return isinstance(found, list) and len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, int | float) and not isinstance(expected, bool):
        return isinstance(found, int | float) and not isinstance(found, bool) and abs(found - expected) < 0.006
    return bool(found == expected) and type(found) is type(expected)


# The right answers


def _with_status(shop: Shop, *statuses: str) -> list[dict[str, Any]]:
    return [order for order in shop.orders.values() if order["status"] in statuses]


def _total(order: dict[str, Any]) -> float:
    return sum(map(value, order["items"]))


def _revenue(shop: Shop) -> float:
    return round(sum(map(_total, _with_status(shop, "delivered"))), 2)


def _months(shop: Shop) -> dict[str, int]:
    return dict(Counter(order["created"][:7] for order in shop.orders.values()))


def _top_customers(shop: Shop) -> list[str]:
    spent: Counter[str] = Counter()
    for order in _with_status(shop, "delivered"):
        spent[order["user_id"]] += _total(order)  # type: ignore[assignment]  # a Counter of floats
    return [user_id for user_id, _ in spent.most_common(2)]


def _best_seller(shop: Shop) -> dict[str, Any]:
    pieces: Counter[str] = Counter()
    for order in shop.orders.values():
        if order["status"] != "cancelled":
            for item in order["items"]:
                pieces[item["name"]] += item["quantity"]
    name, count = pieces.most_common(1)[0]
    return {"product": name, "pieces": count}


def _newsletter(shop: Shop) -> list[str]:
    users = [user for user in shop.users.values() if user["newsletter"] and user["address"]["country"] == "DE"]
    return sorted(user["email"] for user in users)


def _sold_out(shop: Shop) -> list[str]:
    return sorted(
        product["name"]
        for product in shop.products.values()
        if sum(variant["available"] for variant in product["variants"].values()) <= 1
    )


def _reasons(shop: Shop) -> dict[str, int]:
    return dict(Counter(order["cancel_reason"] for order in _with_status(shop, "cancelled")))


def _busiest_city(shop: Shop) -> dict[str, Any]:
    counts = Counter(order["address"]["city"] for order in _with_status(shop, "delivered"))
    city, count = counts.most_common(1)[0]
    return {"city": city, "orders": count}


def _cheapest(shop: Shop) -> dict[str, Any]:
    variants = [variant for product in shop.products.values() for variant in product["variants"].values()]
    best = min((variant for variant in variants if variant["available"]), key=lambda variant: variant["price"])
    return {"item_id": best["item_id"], "price": best["price"]}


def _refunds(shop: Shop) -> float:
    payments = [payment for order in shop.orders.values() for payment in order["payment_history"]]
    return float(round(sum(payment["amount"] for payment in payments if payment["transaction_type"] == "refund"), 2))


def _countries(shop: Shop) -> dict[str, float]:
    spent: dict[str, float] = {}
    for order in _with_status(shop, "processed"):
        country = order["address"]["country"]
        spent[country] = spent.get(country, 0) + _total(order)
    return {country: round(total, 2) for country, total in spent.items()}


def _without_delivery(shop: Shop) -> int:
    return len(shop.users.keys() - {order["user_id"] for order in _with_status(shop, "delivered")})


def _stale(shop: Shop) -> list[str]:
    return sorted(order["order_id"] for order in _with_status(shop, "pending") if order["created"] < "2026-02-01")


def _cancel_stale(shop: Shop) -> None:
    for order_id in _stale(shop):
        shop.cancel_order(order_id, "no longer needed")


# The calls of direct calling


def _orders(**filters: str) -> Callable[[Shop], Calls]:
    def calls(shop: Shop) -> Calls:
        page = 1
        while page is not None:
            (answer,) = yield [("list_orders", {**filters, "page": page})]
            page = answer["next_page"]

    return calls


def _users(shop: Shop) -> Calls:
    page, full = 1, True
    while full:
        (answer,) = yield [("list_users", {"page": page})]
        page, full = page + 1, len(answer) == 50


def _products(shop: Shop) -> Calls:
    yield [("list_products", {})]


def _users_and_deliveries(shop: Shop) -> Calls:
    yield from _users(shop)
    yield from _orders(status="delivered")(shop)


def _cancellations(shop: Shop) -> Calls:
    yield from _orders(status="pending")(shop)
    yield [("cancel_order", {"order_id": order_id, "reason": "no longer needed"}) for order_id in _stale(Shop())]


_DOLLARS = "a number of dollars with two decimals"
TASKS = (
    Task(
        "revenue",
        "What are all delivered orders worth together? Count the price of each item times its quantity.",
        _DOLLARS,
        _revenue,
        _orders(status="delivered"),
    ),
    Task(
        "months",
        "How many orders were created in each month, whatever their status?",
        'an object such as {"2025-12": 3}',
        _months,
        _orders(),
    ),
    Task(
        "top_customers",
        "Which two users spent most on orders that were delivered?",
        "a list of their user ids, the one who spent most first",
        _top_customers,
        _orders(status="delivered"),
    ),
    Task(
        "best_seller",
        "Of which product were most pieces ordered? Leave out cancelled orders.",
        'an object such as {"product": "Lamp", "pieces": 3}',
        _best_seller,
        _orders(),
    ),
    Task(
        "newsletter",
        "Which users in Germany (country DE) get the newsletter?",
        "a list of their emails in alphabetical order",
        _newsletter,
        _users,
    ),
    Task(
        "sold_out",
        "Which products have at most one variant that is available?",
        "a list of their names in alphabetical order",
        _sold_out,
        _products,
    ),
    Task(
        "reasons",
        "How many orders were cancelled for each reason?",
        "an object with the number for each reason",
        _reasons,
        _orders(status="cancelled"),
    ),
    Task(
        "busiest_city",
        "To which city were most orders delivered?",
        'an object such as {"city": "Rome", "orders": 3}',
        _busiest_city,
        _orders(status="delivered"),
    ),
    Task(
        "cheapest",
        "What is the cheapest variant of any product that is available?",
        'an object such as {"item_id": "1234", "price": 5.5}',
        _cheapest,
        _products,
    ),
    Task("refunds", "How much was refunded in all orders together?", _DOLLARS, _refunds, _orders()),
    Task(
        "countries",
        "What are the processed orders worth, by the country they go to? Count price times quantity.",
        'an object such as {"IT": 12.5}, in dollars with two decimals',
        _countries,
        _orders(status="processed"),
    ),
    Task(
        "without_delivery",
        "How many users have no order that was delivered?",
        "a whole number",
        _without_delivery,
        _users_and_deliveries,
    ),
    Task(
        "stale",
        "Cancel every pending order that was created before 2026-02-01, with the reason 'no longer needed'.",
        "a list of their order ids in ascending order",
        _stale,
        _cancellations,
        _cancel_stale,
    ),
)
