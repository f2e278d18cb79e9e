"""Host functions that scripts may call, each behind a grant."""
