"""The client for asyncio. It has the same calls as the synchronous one, and they do the same.

    import asyncio
    import kilokv

    async def main():
        async with kilokv.aio.Client("127.0.0.1:7070") as db:
            await db.put("stock", 100)
            async with db.session() as session:
                await session.execute(kilokv.Transaction().add("stock", -3))

    asyncio.run(main())

Transactions, results and errors are those of the package kilokv. All objects of a client belong to one event loop. A
task that is cancelled while it waits for an answer leaves its request on the server: in a session the request goes on,
and can be resumed.
"""

from kilokv.aio.client import Client
from kilokv.aio.interactive import Interactive
from kilokv.aio.scan import Scan
from kilokv.aio.session import AttachedSession, Pending, Session
from kilokv.aio.watch import Watch

__all__ = ["AttachedSession", "Client", "Interactive", "Pending", "Scan", "Session", "Watch"]
