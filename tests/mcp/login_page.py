"""A program that waits for a login: its browser returns while a person could still paste the address."""

import asyncio

import httpx2

from moonbox.mcp.upstreams.browser import browser


async def main() -> None:
    async def show(_: str) -> None:
        """The person opens it."""

    async with browser(show, paste=True, seconds=100) as person, httpx2.AsyncClient(timeout=100) as client:
        await person.open_address("https://login.example/authorize?state=ours")
        returned = asyncio.ensure_future(person.wait_for_return())
        await asyncio.sleep(0)
        await client.get(f"{person.redirect_uri}?code=c&state=ours")
        print((await returned).code)


asyncio.run(main())
