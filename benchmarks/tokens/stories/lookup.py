"""The lookup story: one small tool, one small call. Nothing for a script to save."""

from __future__ import annotations

from typing import Any

from moonbox import tool
from tokens.stories.story import HERE, Story


@tool(hints={"read_only": True})
def get_weather(city: str) -> dict[str, Any]:
    """The weather in a city now."""
    return {"city": city, "celsius": 11.5, "sky": "cloudy", "wind_kmh": 14}


STORY = Story(
    name="lookup",
    title="lookup: one small tool, one call",
    tools=(get_weather,),
    question="What is the weather in Berlin?",
    calls=(("get_weather", {"city": "Berlin"}),),
    answer=lambda results: results[0],
    reply=lambda found: f"It is {found['celsius']} °C and {found['sky']} in {found['city']}.",
    script=HERE / "lookup.lua",
)
