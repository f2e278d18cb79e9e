"""A shop's 20 tools with nested types, to measure what their description takes."""
# The tools are described and never called:
# mypy: disable-error-code="empty-body"

# mypy: disable-error-code="empty-body"
from __future__ import annotations

import inspect
from typing import Annotated, Any, Literal, TypedDict

from pydantic import Field

from moonbox import Tool

Reason = Literal["no longer needed", "ordered by mistake"]
Status = Literal["pending", "processed", "delivered", "cancelled", "return requested", "exchange requested"]


class Address(TypedDict):
    """Where something is sent."""

    address1: str
    address2: str
    city: str
    country: Annotated[str, Field(description="Two letters, as in ISO 3166")]
    state: str
    zip: str


class CreditCard(TypedDict):
    source: Literal["credit_card"]
    id: str
    brand: str
    last_four: str


class GiftCard(TypedDict):
    source: Literal["gift_card"]
    id: str
    balance: Annotated[float, Field(description="In dollars")]


class PayPal(TypedDict):
    source: Literal["paypal"]
    id: str


PaymentMethod = CreditCard | GiftCard | PayPal


class Name(TypedDict):
    first_name: str
    last_name: str


class User(TypedDict):
    user_id: str
    name: Name
    email: str
    address: Address
    newsletter: Annotated[bool | None, Field(description="null if the user was never asked")]
    payment_methods: Annotated[dict[str, PaymentMethod], Field(description="By their ids")]
    orders: list[str]


class Item(TypedDict):
    name: str
    product_id: str
    item_id: str
    price: Annotated[float, Field(description="In dollars")]
    quantity: int
    options: dict[str, str]


class Fulfillment(TypedDict):
    tracking_id: list[str]
    item_ids: list[str]


class Payment(TypedDict):
    transaction_type: Literal["payment", "refund"]
    amount: Annotated[float, Field(description="In dollars")]
    payment_method_id: str


class Order(TypedDict):
    order_id: Annotated[str, Field(description="Begins with #")]
    user_id: str
    address: Address
    items: list[Item]
    status: Status
    fulfillments: list[Fulfillment]
    payment_history: list[Payment]
    cancel_reason: Reason | None
    created: Annotated[str, Field(description="YYYY-MM-DD")]


class Variant(TypedDict):
    item_id: str
    options: dict[str, str]
    available: bool
    price: Annotated[float, Field(description="In dollars")]


class Product(TypedDict):
    name: str
    product_id: str
    variants: Annotated[dict[str, Variant], Field(description="By their item ids")]


class Page(TypedDict):
    orders: list[Order]
    next_page: int | None


class Refund(TypedDict):
    order: Order
    refunded: list[Payment]


OrderId = Annotated[str, Field(description="Begins with #, such as #W0000001")]
Chosen = Annotated[str, Field(description="Must be one of the user's own")]


def find_user_by_email(email: str) -> User | None:
    """Find a user by email. null if there is none."""


def find_user_by_name(first_name: str, last_name: str, zip: str) -> User | None:
    """Find a user by name and zip code. null if there is none."""


def get_user(user_id: str) -> User:
    """Get a user."""


def update_user_address(user_id: str, address: Address) -> User:
    """Change a user's default address. Orders keep theirs."""


def list_users(page: int = 1) -> list[User]:
    """List users, 50 a page."""


def get_order(order_id: OrderId) -> Order:
    """Get an order."""


def list_orders(user_id: str | None = None, status: Status | None = None, page: int = 1) -> Page:
    """List orders, newest first, 20 a page."""


def cancel_order(order_id: OrderId, reason: Reason) -> Order:
    """Cancel an order. Only while its status is pending."""


def update_order_address(order_id: OrderId, address: Address) -> Order:
    """Change where an order is sent. Only while its status is pending."""


def update_order_items(order_id: OrderId, item_ids: list[str], new_item_ids: list[str], payment: Chosen) -> Order:
    """Replace items of an order by other variants of the same products. Only once for an order."""


def update_order_payment(order_id: OrderId, payment: Chosen) -> Order:
    """Change how an order is paid."""


def return_items(order_id: OrderId, item_ids: list[str], payment: Chosen) -> Order:
    """Return items of a delivered order."""


def exchange_items(order_id: OrderId, item_ids: list[str], new_item_ids: list[str], payment: Chosen) -> Order:
    """Exchange items of a delivered order."""


def refund_order(order_id: OrderId, amount: float) -> Refund:
    """Refund a part of an order."""


def list_products() -> list[Product]:
    """List all products."""


def get_product(product_id: str) -> Product:
    """Get a product with its variants."""


def search_products(words: str, most: int = 10) -> list[Product]:
    """Search products by words."""


def get_item(item_id: str) -> Item:
    """Get an item."""


def list_payments(user_id: str) -> list[Payment]:
    """List all payments of a user."""


def transfer(summary: str) -> str:
    """Transfer the user to a person."""


def tools() -> list[Tool[..., Any]]:
    """All of them, in the order in which they are written here."""
    made = [value for name, value in globals().items() if inspect.isfunction(value) and value.__module__ == __name__]
    return [Tool.from_function(function) for function in made if function is not tools]
