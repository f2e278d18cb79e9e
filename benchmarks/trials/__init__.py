"""The trial: a shop with data, tasks with answers, a recorded model, and what becomes of the tasks."""
