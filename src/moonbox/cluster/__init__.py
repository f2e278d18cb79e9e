"""More than one machine: workers on the nodes of a Ray cluster, for Sandboxes that run elsewhere."""
