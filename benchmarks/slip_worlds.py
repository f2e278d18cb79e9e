"""The worlds of the slips: tools with data behind them, and the tasks with their right answers.

`shop` has tools that say what they return. `office` has tools that do not, as those of most MCP servers.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass
from typing import Any

from moonbox import Tool, ToolError

__all__ = ["TASKS", "Task", "World"]


@dataclass(frozen=True)
class Task:
    """What was asked for, and the right answer."""

    world: str
    text: str
    answer: Any


TASKS = {
    "open_total": Task("shop", "Add up the totals of the open orders.", 245.5),
    "open_count": Task("shop", "How many orders are open?", 3),
    "biggest": Task("shop", "The id of the order with the largest total.", 4),
    "paid_pieces": Task("shop", "How many pieces are in the paid orders?", 9),
    "unshipped": Task("shop", "How many orders have not been shipped?", 4),
    "low_stock": Task(
        "shop", "The names of lamps of which fewer than 5 are in stock, sorted.", ["Arc lamp", "Desk lamp"]
    ),
    "mail_open": Task("shop", "Mail the customer of each open order; return how many mails were sent.", 3),
    "close_paid": Task("shop", "Set the paid orders to 'closed'; return their ids.", [2, 4]),
    "vip_mails": Task(
        "shop", "The mail addresses of customers tagged 'vip', sorted.", ["ada@example.com", "cy@example.com"]
    ),
    "no_manager": Task("office", "How many employees have no manager?", 2),
    "travel": Task("office", "Add up all employees' travel expenses.", 620.5),
    "pending": Task("office", "How many expenses are neither approved nor refused (approved is null)?", 3),
    "warmest": Task("office", "The warmest of Oslo, Rome and Cairo.", "Cairo"),
    "csv_sum": Task("office", "Add up the column 'amount' of report.csv.", 60),
    "tickets": Task("office", "Create a ticket 'Review <name>' for each employee of Sales; return how many.", 2),
    "departments": Task("office", "The number of employees of each department.", {"Sales": 2, "IT": 2, "Legal": 1}),
    "readings": Task("office", "How many of the sensor's readings are missing (null), and how many there are.", [2, 6]),
}

_LINE = {
    "type": "object",
    "properties": {"sku": {"type": "string"}, "quantity": {"type": "integer"}, "price": {"type": "number"}},
    "required": ["sku", "quantity", "price"],
}
_STATUS = {"type": "string", "enum": ["open", "paid", "cancelled", "closed"]}
_ORDER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "customer_id": {"type": "integer"},
        "total": {"type": "number"},
        "status": _STATUS,
        "lines": {"type": "array", "items": _LINE},
        "shipped_at": {"type": ["string", "null"]},
    },
    "required": ["id", "customer_id", "total", "status", "lines", "shipped_at"],
}
_CUSTOMER = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": "string"},
        "email": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id", "name", "email", "tags"],
}
_PAGE = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "sku": {"type": "string"},
                    "name": {"type": "string"},
                    "price": {"type": "number"},
                    "stock": {"type": "integer"},
                },
                "required": ["sku", "name", "price", "stock"],
            },
        },
        "total": {"type": "integer"},
    },
    "required": ["items", "total"],
}


class World:
    """The state of one world, fresh for each script, and its tools."""

    def __init__(self, name: str) -> None:
        self.effects: list[str] = []
        """Calls that changed something."""
        self.tools = _SHOP_TOOLS(self) if name == "shop" else _OFFICE_TOOLS(self)
        self._orders = copy.deepcopy(_ORDERS)

    # shop

    def list_orders(self, arguments: dict[str, Any]) -> Any:
        wanted = arguments.get("status")
        return [order for order in self._orders if wanted in (None, order["status"])]

    def get_customer(self, arguments: dict[str, Any]) -> Any:
        return _row(_CUSTOMERS, arguments["customer_id"])

    def list_customers(self, arguments: dict[str, Any]) -> Any:
        return _CUSTOMERS

    def search_products(self, arguments: dict[str, Any]) -> Any:
        found = [item for item in _PRODUCTS if arguments["query"].lower() in item["name"].lower()]
        return {"items": found[: arguments["limit"]], "total": len(found)}

    def send_mail(self, arguments: dict[str, Any]) -> Any:
        self.effects.append(f"mail {arguments['to']}")
        return {"id": f"m{len(self.effects)}", "accepted": True}

    def set_status(self, arguments: dict[str, Any]) -> Any:
        self.effects.append(f"status {arguments['order_id']}")
        order = _row(self._orders, arguments["order_id"])
        order["status"] = arguments["status"]
        return order

    # office

    def list_employees(self, arguments: dict[str, Any]) -> Any:
        return _EMPLOYEES

    def get_expenses(self, arguments: dict[str, Any]) -> Any:
        return [item for item in _EXPENSES if item["employee"] == arguments["employee_id"]]

    def weather(self, arguments: dict[str, Any]) -> Any:
        degrees = {"Oslo": 4, "Rome": 19, "Cairo": 31}.get(arguments["city"])
        if degrees is None:
            raise ToolError(f"unknown city {arguments['city']}", code="not_found")
        return json.dumps({"city": arguments["city"], "temperature": {"value": degrees, "unit": "C"}})

    def read_file(self, arguments: dict[str, Any]) -> Any:
        return "name,amount\na,10\nb,20\nc,30\n"

    def create_ticket(self, arguments: dict[str, Any]) -> Any:
        self.effects.append(f"ticket {arguments['title']}")
        return {"number": 100 + len(self.effects)}

    def sensor(self, arguments: dict[str, Any]) -> Any:
        return [4, None, 6, 5, None, 7]


def _row(rows: list[dict[str, Any]], identifier: int) -> dict[str, Any]:
    for row in rows:
        if row["id"] == identifier:
            return row
    raise ToolError(f"there is no {identifier}", code="not_found")


def _tool(call: Any, description: str, properties: dict[str, Any], required: list[str], returns: Any = None) -> Tool:
    return Tool.from_schema(
        name=call.__name__,
        description=description,
        parameters={"type": "object", "properties": properties, "required": required},
        returns=returns,
        call=call,
    )


def _SHOP_TOOLS(world: World) -> list[Tool]:
    integer, text = {"type": "integer"}, {"type": "string"}
    return [
        _tool(
            world.list_orders,
            "All orders, or those of one status.",
            {"status": _STATUS},
            [],
            {"type": "array", "items": _ORDER},
        ),
        _tool(world.get_customer, "One customer.", {"customer_id": integer}, ["customer_id"], _CUSTOMER),
        _tool(world.list_customers, "All customers.", {}, [], {"type": "array", "items": _CUSTOMER}),
        _tool(
            world.search_products,
            "Products whose name contains the query.",
            {"query": text, "limit": {"type": "integer", "default": 10}},
            ["query"],
            _PAGE,
        ),
        _tool(
            world.send_mail,
            "Send a mail.",
            {"to": text, "subject": text, "body": text},
            ["to", "subject", "body"],
            {
                "type": "object",
                "properties": {"id": text, "accepted": {"type": "boolean"}},
                "required": ["id", "accepted"],
            },
        ),
        _tool(
            world.set_status,
            "Change an order's status.",
            {"order_id": integer, "status": _STATUS},
            ["order_id", "status"],
            _ORDER,
        ),
    ]


def _OFFICE_TOOLS(world: World) -> list[Tool]:
    text = {"type": "string"}
    return [
        _tool(world.list_employees, "All employees.", {}, []),
        _tool(world.get_expenses, "Expenses of one employee.", {"employee_id": {"type": "integer"}}, ["employee_id"]),
        _tool(world.weather, "The weather of a city.", {"city": text}, ["city"]),
        _tool(world.read_file, "The text of a file.", {"path": text}, ["path"]),
        _tool(
            world.create_ticket,
            "Create a ticket.",
            {"title": text, "priority": {"type": "string", "enum": ["low", "normal", "high"]}},
            ["title"],
        ),
        _tool(world.sensor, "The readings of the sensor; a missing one is null.", {}, []),
    ]


def _order(
    number: int, customer: int, total: float, status: str, lines: list[tuple[str, int, float]], shipped: str | None
) -> dict[str, Any]:
    listed = [{"sku": sku, "quantity": quantity, "price": price} for sku, quantity, price in lines]
    return {
        "id": number,
        "customer_id": customer,
        "total": total,
        "status": status,
        "lines": listed,
        "shipped_at": shipped,
    }


_ORDERS = [
    _order(1, 1, 120.0, "open", [("L1", 2, 60.0)], None),
    _order(2, 2, 80.0, "paid", [("L2", 4, 20.0)], "2026-03-01"),
    _order(3, 1, 25.5, "open", [("L3", 1, 25.5)], None),
    _order(4, 3, 300.0, "paid", [("L1", 5, 60.0)], "2026-03-04"),
    _order(5, 3, 100.0, "open", [("L2", 5, 20.0)], None),
    _order(6, 2, 10.0, "cancelled", [], None),
]
_CUSTOMERS = [
    {"id": 1, "name": "Ada", "email": "ada@example.com", "tags": ["vip", "early"]},
    {"id": 2, "name": "Ben", "email": "ben@example.com", "tags": []},
    {"id": 3, "name": "Cy", "email": "cy@example.com", "tags": ["vip"]},
]
_PRODUCTS: list[dict[str, Any]] = [
    {"sku": "L1", "name": "Desk lamp", "price": 60.0, "stock": 3},
    {"sku": "L2", "name": "Night lamp", "price": 20.0, "stock": 40},
    {"sku": "L3", "name": "Arc lamp", "price": 25.5, "stock": 0},
    {"sku": "T1", "name": "Table", "price": 99.0, "stock": 2},
]
_EMPLOYEES = [
    {"id": 1, "name": "Eve", "department": "Sales", "manager": None},
    {"id": 2, "name": "Fay", "department": "Sales", "manager": "Eve"},
    {"id": 3, "name": "Gus", "department": "IT", "manager": "Eve"},
    {"id": 4, "name": "Hal", "department": "IT", "manager": None},
    {"id": 5, "name": "Ida", "department": "Legal", "manager": "Hal"},
]
_EXPENSES = [
    {"employee": 1, "amount": 120.5, "category": "travel", "approved": True},
    {"employee": 1, "amount": 30.0, "category": "food", "approved": None},
    {"employee": 2, "amount": 500.0, "category": "travel", "approved": False},
    {"employee": 3, "amount": 80.0, "category": "office", "approved": None},
    {"employee": 5, "amount": 45.0, "category": "food", "approved": None},
]
