"""The journal of durable runs: what a Repl did, written before it has an effect, so that another process can go on."""
