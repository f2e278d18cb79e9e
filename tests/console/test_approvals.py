"""The inbox of approvals in a real browser: allow, deny, edit, always; and what other scripts wait for meanwhile."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from moonbox import Sandbox, Toolbox, tool
from moonbox.runs.decisions import Decision
from tests.waiting import wait_until

from .conftest import visiting
from .serving import list_orders, refund
from .test_access import page_key, signed_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Page

    from moonbox import Run

    from .conftest import Visitor
    from .serving import Console

SCRIPT = "local id = 7\nlocal done = tools.refund{order_id = id, amount = 12.5}\nreturn done"


class Started:
    """A script that runs in a thread, as an agent's would."""

    def __init__(self, console: Console, source: str = SCRIPT) -> None:
        self.run: Run | None = None
        self._thread = threading.Thread(target=self._work, args=(console, source), daemon=True)
        self._thread.start()

    def _work(self, console: Console, source: str) -> None:
        self.run = console.service.sandbox.run(source)

    def result(self) -> Run:
        self._thread.join(30)
        assert self.run is not None
        return self.run


@pytest.fixture
def inbox(visitor: Visitor, console: Console) -> Iterator[Page]:
    page = visitor.enter(console, "approvals")
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    yield page
    wait_until(lambda: not console.bench.approvals.pending())


def test_a_question_says_what_would_happen_and_is_allowed(inbox: Page, console: Console) -> None:
    script = Started(console)
    card = inbox.locator(".question")
    expect(card).to_contain_text("refund waits for your approval")
    expect(card).to_contain_text("Refund an order.")
    expect(card).to_contain_text("By the script, line 2")
    expect(card.locator(".line.here")).to_contain_text("tools.refund")
    expect(card).to_contain_text("12.5")
    expect(card).to_have_class(re.compile("destructive"))
    inbox.keyboard.press("j")
    inbox.keyboard.press("a")
    assert script.result().value == "refunded 12.50 for order 7"
    expect(inbox.locator("#inbox .question")).to_have_count(0)
    expect(inbox.locator("#answered li").first).to_contain_text("refund allowed")


def test_a_question_is_denied_with_a_reason(inbox: Page, console: Console) -> None:
    script = Started(console)
    inbox.get_by_role("button", name="Deny…").click()
    inbox.get_by_label("Reason for the script").fill("not on Sundays")
    inbox.keyboard.press("Enter")
    error = script.result().error
    assert error is not None
    assert "not on Sundays" in error.message


def test_arguments_are_edited_and_checked(inbox: Page, console: Console, visitor: Visitor) -> None:
    visitor.allowed = ("status of 400",)
    script = Started(console)
    inbox.get_by_role("button", name="Edit…").click()
    field = inbox.get_by_label("Arguments, as JSON")
    field.fill("not json")
    inbox.get_by_role("button", name="Allow with these").click()
    expect(inbox.get_by_role("alert")).to_contain_text("not valid JSON")
    field.fill('{"order_id": "seven"}')
    inbox.get_by_role("button", name="Allow with these").click()
    expect(inbox.get_by_role("alert")).to_contain_text("order_id")
    # Nothing here allows the call as it was: neither the buttons beside it, nor, after an error, their keys.
    for name in ("Allow", "Always…"):
        expect(inbox.get_by_role("button", name=name, exact=True)).to_be_disabled()
    field.fill('{"order_id": 8, "amount": 1}')
    inbox.get_by_role("button", name="Edit…").click()
    expect(inbox.get_by_role("button", name="Allow", exact=True)).to_be_enabled()
    inbox.get_by_role("button", name="Edit…").click()
    inbox.get_by_role("button", name="Allow with these").click()
    assert script.result().value == "refunded 1.00 for order 8"


def test_an_edit_keeps_the_numbers_that_were_not_edited(visitor: Visitor) -> None:
    got: dict[str, Any] = {}

    @tool(policy="approve")
    def pay(employee_id: int, cents: int, rates: list[Any]) -> str:
        """Pay someone."""
        got.update(employee_id=employee_id, cents=cents, rates=rates)
        return "paid"

    source = "return tools.pay{employee_id = 9007199254740993, cents = 5, rates = {1.0, -0.0, '\\xff', 1e22}}"
    with visiting(visitor, "approvals", [pay]) as (console, page):
        script = Started(console, source)
        expect(page.locator(".question .tree")).to_contain_text("9007199254740993")
        page.get_by_role("button", name="Edit…").click()
        field = page.get_by_label("Arguments, as JSON")
        field.fill(field.input_value().replace('"cents": 5', '"cents": 7'))
        page.get_by_role("button", name="Allow with these").click()
        assert script.result().value == "paid"
        assert repr(got) == "{'employee_id': 9007199254740993, 'cents': 7, 'rates': [1.0, -0.0, b'\\xff', 1e+22]}"


def test_always_holds_for_the_session(inbox: Page, console: Console) -> None:
    script = Started(console, "tools.refund{order_id = 1, amount = 1} return tools.refund{order_id = 2, amount = 2}")
    inbox.get_by_role("button", name="Always…").click()
    inbox.get_by_role("button", name="Always allow").click()
    run = script.result()
    assert [call.approval for call in run.calls] == ["always", "always"]
    assert run.value == "refunded 2.00 for order 2"


def test_arguments_stand_as_in_the_schema_and_long_ones_fold_above_the_buttons(visitor: Visitor) -> None:
    @tool(policy="approve")
    def post(to: str, text: str, at: int) -> str:
        """Post a message."""
        return "posted"

    source = "return tools.post{at = 5, text = ('a line of the text\\n'):rep(400) .. 'its' .. ' end', to = 'ada'}"
    with visiting(visitor, "approvals", [post]) as (console, page):
        script = Started(console, source)
        card = page.locator(".question")
        expect(card.locator(".arguments > * > .key")).to_have_text(["to", "text", "at"])
        expect(card).not_to_contain_text("its end")
        card.get_by_role("button", name="more characters").click()
        expect(card).to_contain_text("its end")
        assert card.evaluate("card => card.clientHeight > 2 * innerHeight")
        expect(card.get_by_role("button", name="Allow")).to_be_in_viewport(ratio=1)
        card.get_by_role("button", name="less").click()
        expect(card).not_to_contain_text("its end")
        card.get_by_role("button", name="Allow").click()
        assert script.result().value == "posted"
        answered = page.locator("#answered li")
        expect(answered).to_contain_text('post allowed by console · to "ada", text "a line')
        answered.locator("summary").click()
        expect(answered.locator(".tree > * > .key")).to_have_text(["to", "text", "at"])


def test_questions_of_one_run_are_answered_together(inbox: Page, console: Console) -> None:
    script = Started(
        console, "return #parallel.map({1, 2, 3}, function(n) return tools.refund{order_id = n, amount = n} end)"
    )
    other = Started(console)
    head = inbox.locator(".asked-head:visible")
    expect(head).to_contain_text("3 questions of one run3 destructiverefund × 3")
    expect(inbox.locator(".question")).to_have_count(4)
    inbox.locator(".asked.several .question").first.get_by_role("button", name="Allow").click()
    expect(head).to_contain_text("2 questions of one run")
    head.get_by_role("button", name="Allow all 2").click()
    assert script.result().value == 3
    expect(inbox.locator(".question")).to_have_count(1)
    expect(head).to_have_count(0)
    inbox.get_by_role("button", name="Allow").click()
    assert other.result().ok


def test_a_rule_allows_the_like_from_then_on(inbox: Page, console: Console) -> None:
    source = "for n = 1, 4 do tools.refund{order_id = n % 3, amount = n * 10.5} end"
    script = Started(console, source)
    inbox.get_by_role("button", name="Always…").click()
    inbox.get_by_label("Rule for amount").select_option("at most")
    inbox.get_by_label("Values for amount").fill("a lot")
    inbox.get_by_role("button", name="Always allow").click()
    expect(inbox.get_by_role("alert")).to_have_text('amount: "a lot" is not a number')
    inbox.get_by_label("Values for amount").fill("31.5")
    inbox.get_by_label("Rule for order_id").select_option("one of")
    inbox.get_by_label("Values for order_id").fill("1, 2")
    inbox.get_by_role("button", name="Always allow").click()
    for left in ("amount31.5", "amount42.0"):  # the third is for another order, the fourth is more
        expect(inbox.locator(".question .arguments")).to_contain_text(left)
        inbox.get_by_role("button", name="Allow", exact=True).click()
    run = script.result()
    assert run.ok
    rule = {"order_id": {"enum": [1, 2]}, "amount": {"maximum": 31.5}}
    assert [(call.approval, call.approval_rule) for call in run.calls] == [
        ("always", rule),
        ("always", rule),
        ("allowed", None),
        ("allowed", None),
    ]
    said = "refund always allowed where order_id one of 1, 2 and amount ≤ 31.5 by console"
    expect(inbox.locator("#answered li").nth(2)).to_contain_text(said)


def test_what_is_no_rule_is_refused(inbox: Page, console: Console) -> None:
    script = Started(console)
    expect(inbox.locator(".question")).to_be_visible()
    question = console.bench.approvals.pending()[0].id
    with signed_in(console) as browser:
        headers = {"x-moonbox-key": page_key(browser), "origin": console.url}
        for body in (
            {"decision": "always", "when": {"amount": {"about": 5}}},
            {"decision": "always", "when": ["amount"]},
            {"decision": "always", "scope": "world"},
            {"decision": "allow", "when": {"amount": {"maximum": 5}}},
        ):
            assert browser.post(f"/approvals/{question}", json=body, headers=headers).status_code == 400, body
    inbox.get_by_role("button", name="Deny…").click()
    inbox.keyboard.press("Enter")
    assert not script.result().ok


def test_a_script_is_read_changed_and_allowed_as_a_whole(inbox: Page, console: Console) -> None:
    ran: list[Run] = []
    source = (
        "-- Refund the first order\nlocal rows = tools.list_orders{customer = 'ada'}\nreturn tools.refund{order_id = 1}"
    )
    hooks: Any = console.bench.hooks
    with Sandbox(console.service.sandbox.toolbox, approve_script=True, min_workers=0, check=False, **hooks) as box:
        thread = threading.Thread(target=lambda: ran.append(box.run(source)), daemon=True)
        thread.start()
        card = inbox.locator(".question")
        expect(card.locator("h2")).to_have_text("A script waits for your approvaldestructive")
        expect(card.locator(".named li")).to_have_text(
            ["list_orders reads Orders of one customer.", "refund destroys Refund an order."]
        )
        expect(card.locator(".snippet .line")).to_have_count(3)
        card.get_by_role("button", name="Edit…").click()
        text = card.get_by_label("The script", exact=True)
        expect(text).to_have_value(source)
        text.fill("return 'nothing is refunded'")
        card.get_by_role("button", name="Allow this script").click()
        thread.join(30)
    (run,) = ran
    assert (run.value, run.approval, run.original_source) == ("nothing is refunded", "edited", source)
    expect(inbox.locator("#answered li").first).to_contain_text("a script allowed with edits by console")


def test_a_question_goes_when_its_run_ends(inbox: Page, console: Console) -> None:
    session = console.service.sandbox.repl()
    thread = threading.Thread(target=lambda: session.run(SCRIPT), daemon=True)
    thread.start()
    expect(inbox.locator(".question")).to_be_visible()
    session.close()
    expect(inbox.locator("#inbox .question")).to_have_count(0)
    thread.join(20)


def test_many_questions_are_walked_by_keys(inbox: Page, console: Console) -> None:
    calls = "parallel.map({1,2,3,4,5,6,7,8,9,10,11,12}, function(n) return tools.refund{order_id = n, amount = n} end)"
    script = Started(console, f"return #{calls}")
    expect(inbox.locator(".question")).to_have_count(12)
    expect(inbox.locator("#approvals-badge")).to_have_text("12")
    expect(inbox).to_have_title("(12) Approvals · moonbox")
    for left in range(11, -1, -1):
        inbox.keyboard.press("j")
        expect(inbox.locator(".question").first).to_be_focused()
        inbox.keyboard.press("a")
        expect(inbox.locator(".question")).to_have_count(left)
    assert script.result().value == 12
    expect(inbox).to_have_title("Approvals · moonbox")


def test_a_key_answers_the_selected_question_and_no_other(inbox: Page, console: Console) -> None:
    scripts = [Started(console), Started(console), Started(console)]
    expect(inbox.locator(".question")).to_have_count(3)
    inbox.keyboard.type("aadw")
    expect(inbox.locator(".question")).to_have_count(3)
    assert len(console.bench.approvals.pending()) == 3
    inbox.keyboard.type("jaa")  # the second letter comes before and after the first answer has arrived
    expect(inbox.locator(".question")).to_have_count(2)
    inbox.keyboard.type("aaw")
    assert inbox.evaluate("document.activeElement.id") == "main"
    assert len(console.bench.approvals.pending()) == 2
    inbox.get_by_role("button", name="Allow", exact=True).first.dblclick()
    expect(inbox.locator(".question")).to_have_count(1)
    assert len(console.bench.approvals.pending()) == 1
    expect(inbox.locator("#inbox[inert]")).to_have_count(0)
    inbox.keyboard.press("j")
    inbox.keyboard.press("a")
    assert all(script.result().ok for script in scripts)


def test_answers_say_what_was_changed_and_lead_to_their_run(inbox: Page, console: Console) -> None:
    script = Started(console, "return tools.refund{order_id = 9007199254740993, amount = 2.0}")
    inbox.get_by_role("button", name="Edit…").click()
    field = inbox.get_by_label("Arguments, as JSON")
    field.fill(field.input_value().replace("2.0", "1.5"))
    inbox.get_by_role("button", name="Allow with these").click()
    run = script.result()
    line = inbox.locator("#answered li").first
    expect(line).to_contain_text("refund allowed with edits by console · amount 2.0 → 1.5 ·")
    expect(line.locator("summary")).not_to_contain_text("order_id")
    line.get_by_role("link").click()
    expect(inbox).to_have_url(re.compile(f"/console/runs/{run.id}$"))


COUNTED = """() => {
  window.told = [];
  window.Notification = class { constructor(text, {body}) { told.push(`${text}: ${body}`); } };
  Notification.permission = "granted";
  Object.defineProperty(document, "hidden", {value: true, configurable: true});
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_counts_what_waits(visitor: Visitor, console: Console) -> None:
    page = visitor.enter(console, "tools")
    expect(page.locator("html")).to_have_attribute("data-live", "live")
    page.evaluate(COUNTED)
    script = Started(
        console,
        "return parallel{function() return tools.refund{order_id = 1, amount = 1} end, "
        "function() return tools.refund{order_id = 2, amount = 2} end}",
    )
    expect(page).to_have_title("(2) Tools · moonbox")
    assert page.evaluate("told") == ["1 call waits for approval: refund", "2 calls wait for approval: refund"]
    for question in console.bench.approvals.pending():
        console.bench.approvals.answer(question.id, Decision("allow"))
    script.result()
    expect(page).to_have_title("Tools · moonbox")


def test_a_definition_that_changed_since_is_pointed_out(visitor: Visitor) -> None:
    @tool(name="refund", policy="approve")
    def changed(order_id: int, amount: float, to_account: str = "") -> str:
        """Refund an order to any account."""
        return "done"

    box = Toolbox([list_orders, refund])
    with visiting(visitor, "approvals", box) as (console, page):
        first = Started(console)
        page.get_by_role("button", name="Allow", exact=False).first.click()
        assert first.result().ok
        box.add(changed, replace=True)
        second = Started(console)
        warning = page.locator(".question .warning")
        expect(warning).to_contain_text("definition changed since it was last allowed (description, parameters")
        warning.locator("summary").first.click()
        expect(warning.locator("del").first).to_contain_text("Refund an order.")
        expect(warning.locator("ins", has_text="to_account").first).to_be_visible()
        page.keyboard.press("j")
        page.keyboard.press("a")
        assert second.result().ok
