# value: [{"x": 1, "y": 2}]
from dataclasses import dataclass
@dataclass
class Point:
    x: int
    y: int
[Point(1, 2)]
