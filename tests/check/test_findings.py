"""What a look at a script finds, and what it leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from moonbox import Tool, Toolbox
from moonbox.check.checker import Checker
from moonbox.check.tools import ToolView
from moonbox.languages.registry import LANGUAGES

if TYPE_CHECKING:
    from .conftest import Find

PRELUDE = 'local r = tools.get_expenses{employee_id = 1}\nlocal page = tools.search{query = "x"}\n'
ERRORS = {
    # tools
    "return tools.get_expensses{employee_id = 1}": "unknown tool 'get_expensses'",
    "return tools.shop.search{query = 'x'}": "unknown tool 'shop.search'",
    "return tools.wipe{}": "the tool 'wipe' cannot be called from a script: it is called directly",
    "return tools:search{query = 'x'}": "tools are called with a dot, not with a colon",
    "return search{query = 'x'}": "'search' is not a global: tools are called through the table 'tools'",
    "for _, x in ipairs(tools.search) do print(x) end": "'tools.search' is a tool that is not called",
    "return tools.search.items": "'tools.search' is a tool that is not called: it has no field 'items'",
    # results
    "return r.length": "'r' (the result of tools.get_expenses) is a list: it has no field 'length'",
    "return #page": "'page' (the result of tools.search) is an object, not a list: # does not count it",
    "return page[1]": "'page' (the result of tools.search) is an object, not a list: [1] is not in it",
    "return page.itemz": "the field 'itemz' is not in the result of tools.search",
    "return page.items[1].price": "the field 'price' is not in the result of tools.search",
    "return (page.items[1].price or 0)": "the field 'price' is not in the result of tools.search",
    "for _, x in ipairs(page) do print(x) end": (
        "'page' (the result of tools.search) is an object, not a list: ipairs finds nothing in it"
    ),
    "for _, x in ipairs(r) do if x.paid then print(x) end end": (
        "the field 'paid' is not in the result of tools.get_expenses"
    ),
    "for x in ipairs(r) do print(x.amount) end": "'x' is a number: it has no field 'amount'",
    "for _, x in r do print(x) end": "a loop needs ipairs around a list, and pairs around an object",
    "table.sort(r, function(a, b) return a.cost < b.cost end)": (
        "the field 'cost' is not in the result of tools.get_expenses"
    ),
    "local all = parallel.map({1}, function(i) return tools.search{query = 'x'} end) return all[1].hits": (
        "the field 'hits' is not in the result of tools.search"
    ),
    "local all = parallel{function() return tools.search{query = 'x'} end} return all[1].hits": (
        "the field 'hits' is not in the result of tools.search"
    ),
    "local function get() return tools.search{query = 'x'} end return get().hits": (
        "the field 'hits' is not in the result of tools.search"
    ),
    "result = tools.search{query = 'x'} return result.hits": "the field 'hits' is not in the result of tools.search",
    "return r[0]": "lists start at 1: r[0] is nil",
    "return r[1].status == 'opened'": (
        "'r[1].status' (from the result of tools.get_expenses) is never \"opened\": the comparison is always false"
    ),
    "return r[1].amount == '5'": (
        "'r[1].amount' (from the result of tools.get_expenses) is of type number, never \"5\": the comparison is "
        "always false"
    ),
    "return r[1].category > 5": (
        "'r[1].category' (from the result of tools.get_expenses) is a string: it cannot be compared with a number"
    ),
    "return 'x' .. r": "'r' (the result of tools.get_expenses) is a list: it cannot be joined to a string",
    "return r[1].category:trim()": "a string has no method 'trim'",
    "return r:map(print)": "a list has no method 'map'",
    "return json.decode(page)": "'page' (the result of tools.search) is data already: use it without json.decode",
    # words of other languages
    "return True": "'True' is not defined",
    "return len(r)": "there is no function 'len'",
    "console.log(r)": "there is no 'console'",
    "return string.trim('x')": "there is no function string.trim",
    # slips
    "local a, b = parallel{print, print} return b": "parallel returns one list: 'b' gets nothing",
    "return pcall(tools.search{query = 'x'})": "pcall must make the call itself: here the tool is called before it",
    "return parallel{tools.search{query = 'x'}}": "parallel expects functions: here the tool is called before it",
    "local t = {} return table.sort(t)": "table.sort returns nothing",
    "local t = 0 for i = 1, 3 do local t = t + i end return t": (
        "this 't' is a new variable in each round of the loop: the one outside does not change"
    ),
    "return not page.total == 5": "'not' applies to page.total alone: the comparison with 5 is always false",
    "return type(page) == 'array'": 'type never returns "array"',
    "return 'a' + 1": "'+' cannot calculate with the string \"a\"",
    "return tonumber(page.items[1].category:gsub(',', ''))": (
        "gsub returns two values, and tonumber takes the second as a base"
    ),
    "for i = 0, #r - 1 do print(r[i]) end": "lists start at 1: this loop reads r[0], which is nil, and not r[#r]",
    "local all = {} all[#all + 1] = tools.search{query = 'x'} return all[1].hits": (
        "the field 'hits' is not in the result of tools.search"
    ),
    "local all = {} for _, x in ipairs(r) do table.insert(all, x) end for _, x in ipairs(all) do print(x.cost) end": (
        "the field 'cost' is not in the result of tools.get_expenses"
    ),
    # slips
    "table.sort(r, 'amount') return r": (
        "table.sort takes a function that compares two elements, not the name of a field"
    ),
    "local n = {} n:push(1) return n": "a table has no method 'push'",
    "local n = {} for _, x in ipairs(r) do n:append(x.amount) end return n": "a table has no method 'append'",
    "local n = {} insert(n, 1) return n": "there is no function 'insert'",
    "return floor(1.5)": "there is no function 'floor'",
    "return f'total: {page.total}'": "there are no f-strings: join the parts with ..",
}
NOTES = {
    "return page.total == json.null": (
        "null in a result reads as nil, so that this comparison is always false; json.null is for sending one"
    ),
    "if json.null ~= r[1] then return 1 end": (
        "null in a result reads as nil, so that this comparison is always true; json.null is for sending one"
    ),
    "local t, n = {}, 0 for _, x in ipairs(r) do t[n] = x.amount n = n + 1 end return t": (
        "lists start at 1: the first element goes to t[0], which # and ipairs do not see"
    ),
    "local s = '' for _, x in ipairs(r) do s = s .. x.amount end return tonumber(s)": (
        "'s' was joined with ..: tonumber reads all its digits as one number"
    ),
    "return totl": "'totl' is not set anywhere: it is nil",
    "return #{a = 1, b = 2}": "# counts list elements: of a table with named fields it gives 0",
    "return math.max({1, 2})": "math.max takes numbers, not a table",
    "if #r then print(r) end": "0 is true in Lua: #r always is",
    "local n = {} for _, x in ipairs(r) do n[x.category] = 1 end for k in ipairs(n) do print(k) end": (
        "n is filled under keys that are text: ipairs finds nothing in it"
    ),
    "return ('x'):match('\\\\d+')": "'\\d' is not part of a Lua pattern",
    "return pcall(function() return tools.unknown{} end)": "unknown tool 'unknown'",
    "return pcall(tools.search, {q = 'x'})": (
        "invalid arguments for search:\n- query: missing, expected string\n- q: unknown parameter\n"
        "valid parameters: query* (string)"
    ),
    "local list = page.items or page.results return list": "the field 'results' is not in the result of tools.search",
    "return page.hits == nil": "the field 'hits' is not in the result of tools.search",
    "local a = tools.anything{} return a.name": "the field 'name' was never seen in the result of tools.anything",
    "local a = tools.anything{} return a.rows.length": (
        "'a.rows' (from the result of tools.anything) is a list: it has no field 'length'"
    ),
}
FINE = [
    "return r[1].amount + page.total",
    "for i, x in ipairs(page.items) do x.rank = i end return page.items[1].rank",
    "for k, v in pairs(page) do page[k .. '_'] = v end return page.total_",
    "return tools.open_result{}.anything",
    "local args = {query = 'x'} args.limit = 3 return tools.search(args)",
    "if tools.unknown then return tools.unknown{} end",
    "return load and load('x')",
    "local r2 = tools.search{query = 'x'} r2 = r2.items return r2.length",
    "local x = page x = nil return x",
    "total = (total or 0) + 1 return total",
    "True = true return True",
    "local function f(t) return t.anything end return f(page)",
    "return page.items[1] and page.items[1].amount or 0",
    "for i = 0, #r - 1 do print(r[i + 1]) end",
    "local len = function(t) return #t end return len(r)",
    "return type(r) == 'table'",
    "table.sort(r, function(a, b) return a.amount > b.amount end) return r",
    "return (r[1].category):upper()",
    "local t = {} t.length = 3 return t.length",
    "local s = 'a' return s:rep(3)",
    "return _G.anything",
    "local insert = table.insert local n = {} insert(n, 1) return n",
    "function f(text) return text end return f'{x}'",
    "local n = {push = function(self, x) self[#self + 1] = x end} n:push(1) return n",
    "local n = {} n.push = function(self, x) self[#self + 1] = x end n:push(1) return n",
    "local n = {} function n:append(x) self[#self + 1] = x end n:append(1) return n",
    "local by = function(a, b) return a.amount < b.amount end table.sort(r, by) return r",
    "return json.encode({a = json.null})",
    "local a = {} a[#a + 1] = page.items[1] a[#a + 1] = tools.anything{} return a[2].id",
    "local function add(t, v) t[#t + 1] = v end local a = {} a[1] = r[1] add(a, {id = 1}) return a[2].id",
    "local n = {} n[r[1].category] = 1 for k, v in pairs(n) do print(k, v) end",
]
RHAI_ERRORS = {
    "let r = get_expenses(#{employee_id: 1}); r[0].price": "the field 'price' is not in the result of get_expenses",
    "get_expense(#{employee_id: 1})": "unknown function 'get_expense'",
    'search(#{query: "x"}).items.map(|x| x.price)': "the field 'price' is not in the result of search",
    'search(#{query: "x"}).items.iter()': "a list has no method 'iter'",
    'for x in search(#{query: "x"}) { print(x); }': ("the result of search is not a list: a loop cannot go over it"),
    "println(1);": "there is no function 'println'",
    '`${search(#{query: "x"}).hits}`': "the field 'hits' is not in the result of search",
    "if get_expenses(#{employee_id: 1}).len() { 1 } else { 2 }": (
        "'get_expenses(#{employee_id: 1}).len()' is not a truth value"
    ),
    'parallel([search(#{query: "x"})])': "parallel expects functions: here the tool is called before it",
    "None": "'None' is not defined",
}
RHAI_FINE = [
    "let r = get_expenses(#{employee_id: 1}); r[0].amount + r.len()",
    "fn add(a) { a + 1 } add(2)",
    "try { get_expense(1) } catch (e) { e.code }",
    "let f = |x| x + 1; f.call(2)",
    'search(#{query: `a ${1 + 2}`}).items.filter(|x| x.status == "open").len()',
    "let x = #{a: 1}; x.b = 2; x.b",
    "let t = 0; for i in 0..3 { t += i; } t",
]


@pytest.mark.parametrize("source", ERRORS)
def test_an_error(source: str, find: Find) -> None:
    errors = [item for item in find(PRELUDE + source) if item.severity == "error"]
    assert [item.message for item in errors] == [ERRORS[source]]
    assert errors[0].line == 3


@pytest.mark.parametrize("source", NOTES)
def test_a_note(source: str, find: Find) -> None:
    found = find(PRELUDE + source)
    assert [(item.severity, item.message) for item in found] == [("note", NOTES[source])]


@pytest.mark.parametrize("source", FINE)
def test_nothing_to_say(source: str, find: Find) -> None:
    assert find(PRELUDE + source) == ()


@pytest.mark.parametrize("source", RHAI_ERRORS)
def test_an_error_in_rhai(source: str, find: Find) -> None:
    errors = [item for item in find(source, "rhai") if item.severity == "error"]
    assert [item.message for item in errors] == [RHAI_ERRORS[source]]


@pytest.mark.parametrize("source", RHAI_FINE)
def test_nothing_to_say_in_rhai(source: str, find: Find) -> None:
    assert [item for item in find(source, "rhai") if item.severity == "error"] == []


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ("return pcall(tools.nope, {})", "lua"),
        ("return pcall(function() return tools.nope{} end)", "lua"),
        ("local function f() return tools.nope{} end return pcall(f)", "lua"),
        ("local f = function() return tools.nope{} end return xpcall(f, print)", "lua"),
        ("function f() return tools.nope{} end return pcall(function() f() end)", "lua"),
        ("local function g() return tools.nope{} end local function f() return g() end return pcall(f)", "lua"),
        ("try { nope(1) } catch { 7 }", "rhai"),
        ("fn f() { nope(1) } try { f() } catch { 7 }", "rhai"),
        ("let f = || nope(1); try { f.call() } catch { 7 }", "rhai"),
    ],
)
def test_what_a_script_catches_is_a_note(source: str, language: str, find: Find) -> None:
    assert [item.severity for item in find(source, language)] == ["note"]


@pytest.mark.parametrize(
    ("source", "language"),
    [
        ("local function f() return tools.nope{} end local ok = pcall(print) return f()", "lua"),
        ("pcall(print) return tools.nope{}", "lua"),
        ("fn f() { nope(1) } try { 1 } catch { 7 } f()", "rhai"),
    ],
)
def test_what_a_script_does_not_catch_is_an_error(source: str, language: str, find: Find) -> None:
    assert [item.severity for item in find(source, language)] == ["error"]


@pytest.mark.parametrize(
    ("source", "language", "is_noted"),
    [
        ("local x = tools.expense{} if not x.approved then return 1 end", "lua", True),
        ("local x = tools.expense{} if x.approved ~= true then return 1 end", "lua", True),
        ("let x = expense(#{}); if x.approved != true { 1 } else { 2 }", "rhai", True),
        ("local x = tools.expense{} if x.approved == false then return 1 end", "lua", False),
        ("local x = tools.expense{} if not x.paid then return 1 end", "lua", False),
        ("let x = expense(#{}); if x.approved == false { 1 } else { 2 }", "rhai", False),
    ],
)
def test_a_truth_value_that_may_be_null(source: str, language: str, is_noted: bool) -> None:
    fields = {"approved": {"type": ["boolean", "null"]}, "paid": {"type": "boolean"}}
    returns = {"type": "object", "properties": fields}
    tools = Toolbox([Tool.from_schema(name="expense", call=lambda _: None, returns=returns)])
    spoken = LANGUAGES[language]
    findings = Checker(spoken).check(source, ToolView(tools, spoken))
    said = "'x.approved' (from the result of {}) can be null: this counts null like false"
    name = "tools.expense" if language == "lua" else "expense"
    assert [(item.severity, item.message) for item in findings] == [("note", said.format(name))] * is_noted
    assert [item.hint for item in findings] == [
        f"where only one is meant, write: x.approved == false, or x.approved == {'nil' if language == 'lua' else '()'}"
    ] * is_noted


@pytest.mark.parametrize(
    "source",
    [
        "local t, n = {}, 0 for i = 1, 3 do n = n + 1 t[n] = i end return t",
        "local t, n = {}, 1 for i = 1, 3 do t[n] = i n = n + 1 end return t",
        "local s = '' for i = 1, 3 do s = s .. i end return s",
    ],
)
def test_lists_and_texts_that_are_filled_rightly(source: str, find: Find) -> None:
    assert find(source) == ()


def test_where_and_what_instead(find: Find) -> None:
    (finding,) = find("local r = 1\nreturn tools.serch{query = 'x'}")
    assert (finding.line, finding.column, finding.hint) == (2, 14, "did you mean tools.search?")
    assert (finding.code, finding.tool) == ("unknown_tool", "serch")


def test_arguments_say_what_the_call_would_say(find: Find) -> None:
    (finding,) = find("return tools.get_expenses{employe_id = 1, limit = n, note = 'x'}", names=["n"])
    assert finding.message == (
        "invalid arguments for get_expenses:\n- employee_id: missing, expected integer\n"
        "- employe_id: unknown parameter; did you mean 'employee_id'?\n- note: unknown parameter\n"
        "valid parameters: employee_id* (integer), limit (integer, default 10)"
    )


@pytest.mark.parametrize(
    "source",
    [
        "return tools.get_expenses{employee_id = id}",
        "return tools.get_expenses{employee_id = 1, [name] = 2}",
        "return tools.get_expenses(id)",
        "return tools.get_expenses(table.unpack(list))",
        "return tools.get_expenses{employee_id = 3.0}",
        "return tools.get_expenses(1, 5)",
        "return tools.get_expenses{employee_id = 1, limit = nil}",
    ],
)
def test_arguments_that_may_fit(source: str, find: Find) -> None:
    assert find(source, names=["id", "name", "list"]) == ()


def test_what_the_host_added_is_known(find: Find) -> None:
    assert find("return rows", names=["rows"]) == ()
