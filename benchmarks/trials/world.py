"""A shop with data: users, products, orders, and the 20 tools of `tokens.shop` that read and change them."""

from __future__ import annotations

import inspect
from dataclasses import replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from tokens import shop

if TYPE_CHECKING:
    from moonbox import Tool

__all__ = ["Shop", "value"]

USERS, ORDERS = 64, 150
FIRST = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gina", "Hugo")
LAST = ("Arnold", "Berger", "Costa", "Dupont", "Evans", "Fischer", "Garcia", "Haas")
PLACES = (
    ("Berlin", "DE", "BE"),
    ("Munich", "DE", "BY"),
    ("Paris", "FR", "IDF"),
    ("Lyon", "FR", "ARA"),
    ("Madrid", "ES", "MD"),
    ("Boston", "US", "MA"),
    ("Denver", "US", "CO"),
)
GOODS = (
    *("Lamp", "Desk", "Chair", "Kettle", "Toaster", "Backpack", "Tent", "Bottle", "Keyboard", "Mouse", "Headphones"),
    *("Speaker", "Watch", "Jacket", "Boots", "Gloves", "Puzzle", "Skateboard", "Bicycle", "Helmet", "Notebook"),
    *("Umbrella", "Blender", "Camera"),
)
STATUSES = ("delivered", "pending", "delivered", "processed", "cancelled", "delivered", "return requested")
REASONS = ("no longer needed", "ordered by mistake", "no longer needed")
COLORS = ("black", "white", "red")
PER_PAGE = 20
USERS_PER_PAGE = 50


class Shop:
    """The state of the shop. Every method with the name of a tool is that tool."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Make the state as it is at the start of a task."""
        self.products = {product["product_id"]: product for product in map(_product, range(len(GOODS)))}
        self.users = {user["user_id"]: user for user in map(_user, range(USERS))}
        orders = [self._order(number) for number in range(ORDERS)]
        self.orders = {order["order_id"]: order for order in orders}
        for order in orders:
            self.users[order["user_id"]]["orders"].append(order["order_id"])

    def tools(self) -> list[Tool[..., Any]]:
        """The shop's tools over this state."""
        return [replace(tool, call=_with_signature(getattr(self, tool.name), tool.call)) for tool in shop.tools()]

    # Users

    def find_user_by_email(self, email: str) -> Any:
        return next((user for user in self.users.values() if user["email"] == email), None)

    def find_user_by_name(self, first_name: str, last_name: str, zip: str) -> Any:
        name = {"first_name": first_name, "last_name": last_name}
        found = (user for user in self.users.values() if user["name"] == name and user["address"]["zip"] == zip)
        return next(found, None)

    def get_user(self, user_id: str) -> Any:
        return _known(self.users, user_id, "user")

    def update_user_address(self, user_id: str, address: Any) -> Any:
        user = self.get_user(user_id)
        user["address"] = address
        return user

    def list_users(self, page: int = 1) -> Any:
        return list(self.users.values())[(page - 1) * USERS_PER_PAGE : page * USERS_PER_PAGE]

    # Orders

    def get_order(self, order_id: str) -> Any:
        return _known(self.orders, order_id, "order")

    def list_orders(self, user_id: str | None = None, status: str | None = None, page: int = 1) -> Any:
        found = [
            order
            for order in self.orders.values()
            if user_id in (None, order["user_id"]) and status in (None, order["status"])
        ]
        found.sort(key=lambda order: (order["created"], order["order_id"]), reverse=True)
        end = page * PER_PAGE
        return {"orders": found[end - PER_PAGE : end], "next_page": page + 1 if end < len(found) else None}

    def cancel_order(self, order_id: str, reason: str) -> Any:
        order = self._with_status(order_id, "pending")
        order.update(status="cancelled", cancel_reason=reason)
        return order

    def update_order_address(self, order_id: str, address: Any) -> Any:
        order = self._with_status(order_id, "pending")
        order["address"] = address
        return order

    def update_order_items(self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment: str) -> Any:
        order = self._with_status(order_id, "pending")
        for old, new in zip(item_ids, new_item_ids, strict=True):
            place = next(place for place, item in enumerate(order["items"]) if item["item_id"] == old)
            order["items"][place] = {**self.get_item(new), "quantity": order["items"][place]["quantity"]}
        return order

    def update_order_payment(self, order_id: str, payment: str) -> Any:
        order = self._with_status(order_id, "pending")
        order["payment_history"][0]["payment_method_id"] = payment
        return order

    def return_items(self, order_id: str, item_ids: list[str], payment: str) -> Any:
        order = self._with_status(order_id, "delivered")
        order["status"] = "return requested"
        return order

    def exchange_items(self, order_id: str, item_ids: list[str], new_item_ids: list[str], payment: str) -> Any:
        order = self._with_status(order_id, "delivered")
        order["status"] = "exchange requested"
        return order

    def refund_order(self, order_id: str, amount: float) -> Any:
        order = self.get_order(order_id)
        method = order["payment_history"][0]["payment_method_id"]
        payment = {"transaction_type": "refund", "amount": amount, "payment_method_id": method}
        order["payment_history"].append(payment)
        return {"order": order, "refunded": [payment]}

    # Products

    def list_products(self) -> Any:
        return list(self.products.values())

    def get_product(self, product_id: str) -> Any:
        return _known(self.products, product_id, "product")

    def search_products(self, words: str, most: int = 10) -> Any:
        wanted, products = words.lower().split(), self.products.values()
        return [item for item in products if any(word in item["name"].lower() for word in wanted)][:most]

    def get_item(self, item_id: str) -> Any:
        for product in self.products.values():
            if item_id in product["variants"]:
                return _item(product, item_id, 1)
        raise LookupError(f"there is no item {item_id}")

    # Others

    def list_payments(self, user_id: str) -> Any:
        orders = (self.orders[order_id] for order_id in self.get_user(user_id)["orders"])
        return [payment for order in orders for payment in order["payment_history"]]

    def transfer(self, summary: str) -> str:
        return "transferred"

    # Inside

    def _with_status(self, order_id: str, status: str) -> Any:
        order = self.get_order(order_id)
        if order["status"] != status:
            raise ValueError(f"order {order_id} is {order['status']}, not {status}")
        return order

    def _order(self, number: int) -> dict[str, Any]:
        user = self.users[f"user_{number * 37 % (USERS - 5) + 1:03}"]
        products = list(self.products.values())
        items = []
        for place in range(1 + number % 4):
            product = products[(number * 5 + place * 7) % len(products)]
            variant = list(product["variants"])[(number + place) % 3]
            items.append(_item(product, variant, 1 + (number * place) % 3))
        status = STATUSES[number % len(STATUSES)]
        method = next(iter(user["payment_methods"]))
        total = round(sum(map(value, items)), 2)
        payments = [{"transaction_type": "payment", "amount": total, "payment_method_id": method}]
        if status == "return requested" or number % 11 == 0:
            payments.append({**payments[0], "transaction_type": "refund", "amount": items[0]["price"]})
        sent = status in ("delivered", "return requested")
        parcel = {"tracking_id": [f"T{number:05}"], "item_ids": [item["item_id"] for item in items]}
        return {
            "order_id": f"#W{number + 1:07}",
            "user_id": user["user_id"],
            "address": dict(user["address"]),
            "items": items,
            "status": status,
            "fulfillments": [parcel] if sent else [],
            "payment_history": payments,
            "cancel_reason": REASONS[number % len(REASONS)] if status == "cancelled" else None,
            "created": str(date(2026, 1, 1) + timedelta(days=number * 101 % 181)),
        }


def value(item: dict[str, Any]) -> float:
    """What an order's item costs in all."""
    return float(item["price"] * item["quantity"])


def _product(number: int) -> dict[str, Any]:
    variants = {}
    for place, color in enumerate(COLORS):
        item_id = f"{1000 + number * 10 + place}"
        variants[item_id] = {
            "item_id": item_id,
            "options": {"color": color},
            "available": (number * 7 + place * place) % 5 > 1,
            "price": round(9.5 + (number * 53 + place * 17) % 190 + 0.45 * place, 2),
        }
    return {"name": GOODS[number], "product_id": f"p{number + 1:02}", "variants": variants}


def _user(number: int) -> dict[str, Any]:
    first, last = FIRST[number % 8], LAST[number // 8]
    city, country, state = PLACES[number * 3 % len(PLACES)]
    card, gift = f"credit_card_{number + 1}", f"gift_card_{number + 1}"
    methods: dict[str, Any] = {card: {"source": "credit_card", "id": card, "brand": "visa", "last_four": "4242"}}
    if number % 3 == 0:
        methods[gift] = {"source": "gift_card", "id": gift, "balance": 5.0 * (number % 7)}
    return {
        "user_id": f"user_{number + 1:03}",
        "name": {"first_name": first, "last_name": last},
        "email": f"{first}.{last}@example.com".lower(),
        "address": {
            "address1": f"{number + 1} Main Street",
            "address2": "",
            "city": city,
            "country": country,
            "state": state,
            "zip": f"{10000 + number * 7}",
        },
        "newsletter": (True, None, False, True)[number % 4],
        "payment_methods": methods,
        "orders": [],
    }


def _item(product: dict[str, Any], item_id: str, quantity: int) -> dict[str, Any]:
    variant = product["variants"][item_id]
    return {
        "name": product["name"],
        "product_id": product["product_id"],
        "item_id": item_id,
        "price": variant["price"],
        "quantity": quantity,
        "options": dict(variant["options"]),
    }


def _known(table: dict[str, Any], key: str, what: str) -> Any:
    if key not in table:
        raise LookupError(f"there is no {what} {key}")
    return table[key]


def _with_signature(method: Any, declared: Any) -> Any:
    """The method, called by the names of the declared function's parameters."""
    names = list(inspect.signature(declared).parameters)
    return lambda *args, **named: method(**dict(zip(names, args, strict=False)), **named)
