# value: [102, [101, 102, 103]]
# calls: add add add add add add add add
import asyncio
async def one(i):
    first = await add(i)
    return add(first, 100)
asyncio.run(one(1)), await asyncio.gather(*[one(i) for i in range(3)])
