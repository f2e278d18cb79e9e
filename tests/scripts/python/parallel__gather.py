# value: [2, 3]
# calls: add add
import asyncio
first, second = await asyncio.gather(add(1), add(2))
[first, second]
