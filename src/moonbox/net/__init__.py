"""Reaching other machines: which addresses are allowed, Host and Origin checks, the bounded HTTP client."""
