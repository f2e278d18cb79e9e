-- value: true
t = { inner = {} }
alias = t.inner
return alias == t.inner
-- next run
-- value: true
-- value: 9
alias.x = 9
return alias == t.inner, t.inner.x
