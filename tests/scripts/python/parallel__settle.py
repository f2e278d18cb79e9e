# value: [2, "conflict", 4]
# calls: add fail add
[r["value"] if r["ok"] else r["error"]["code"] for r in parallel_settle(lambda i: fail(code="conflict") if i == 2 else add(i), [1, 2, 3])]
