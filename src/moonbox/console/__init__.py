"""The console: pages to try scripts, to watch runs, and to answer approvals, on top of the HTTP API."""
