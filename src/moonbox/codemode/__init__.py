"""Code mode: what the model is shown, and how its calls are routed."""
