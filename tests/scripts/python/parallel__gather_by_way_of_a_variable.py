# value: [[1, 2, 3], [10, 11]]
# calls: add add add add add
import asyncio
tasks = [add(i) for i in range(3)]
more = []
for i in range(2):
    more.append(tools.add(i, 10))
[await asyncio.gather(*tasks), await asyncio.gather(*more)]
