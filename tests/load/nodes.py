# SPDX-License-Identifier: GPL-2.0-or-later
"""Nodes of one database that is in this process: as much of RESP as oltp-load speaks, and faults.

A node listens on a unix socket. All run in one thread of their own; whoever is in another one
calls them by Nodes.call.
"""
import asyncio
import threading


class Connection:
    """A client of a node: what it has queued, and whether it is between transactions."""

    def __init__(self, node, writer):
        self.node = node
        self.writer = writer
        self.version = 2
        self.queued = None      # commands since MULTI

    def is_idle(self):
        return self.queued is None

    def push(self, *elements):
        text = f">{len(elements)}\r\n"
        for element in elements:
            text += (f":{element}\r\n" if isinstance(element, int) else
                     f"${len(element)}\r\n{element}\r\n")
        self.writer.write(text.encode())

    def null(self):
        return b"_\r\n" if self.version == 3 else b"$-1\r\n"


class Node:
    """One address of the database."""

    def __init__(self, database, path):
        self.database = database
        self.path = path
        self.address = "unix:" + path
        self.server = None
        self.connections = []
        self.accepted = 0       # connections so far
        self.increments = 0     # executed on this node
        self.breaks = []        # for each of the next requests: "before" or "after" it is done

    async def listen(self):
        self.server = await asyncio.start_unix_server(self.serve, self.path)

    async def stop_listening(self):
        self.server.close()

    async def serve(self, reader, writer):
        connection = Connection(self, writer)
        self.connections.append(connection)
        self.accepted += 1
        try:
            while True:
                args = await self.read_command(reader)
                if not await self.obey(connection, args):
                    break
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        self.connections.remove(connection)
        writer.close()

    @staticmethod
    async def read_command(reader):
        n = int((await reader.readline())[1:] or b"0")
        if not n:
            raise ConnectionError
        args = []
        for _ in range(n):
            length = int((await reader.readline())[1:])
            args.append((await reader.readexactly(length + 2))[:-2])
        return args

    async def obey(self, connection, args):
        """Answer a command. Return whether the connection goes on."""
        name, write = args[0], connection.writer.write
        if name == b"HELLO":
            connection.version = 3
            write(b"%1\r\n+proto\r\n:3\r\n")
        elif name == b"PING":
            write(b"+PONG\r\n")
        elif name == b"MULTI":
            connection.queued = []
            write(b"+OK\r\n")
        elif connection.queued is not None and name != b"EXEC":
            connection.queued.append(args)
            write(b"+QUEUED\r\n")
        else:
            commands = connection.queued if name == b"EXEC" else [args]
            connection.queued = None
            how = self.breaks.pop(0) if self.breaks else ""
            if how == "before":
                return False
            answers = [self.execute(connection, command) for command in commands]
            if how == "after":
                return False
            if name == b"EXEC":
                write(f"*{len(answers)}\r\n".encode())
            write(b"".join(answers))
        return True

    def execute(self, connection, args):
        name, key = args[0], args[1]
        if name == b"SET":
            self.database[key] = args[2]
            return b"+OK\r\n"
        if name == b"GET":
            value = self.database.get(key)
            return connection.null() if value is None else b"$%d\r\n%s\r\n" % (len(value), value)
        if name == b"DEL":
            return b":%d\r\n" % (self.database.pop(key, None) is not None)
        if name == b"INCR":
            self.increments += 1
            value = int(self.database.get(key, b"0")) + 1
            self.database[key] = b"%d" % value
            return b":%d\r\n" % value
        return b"-ERR unknown command\r\n"

    async def tell(self, n, *elements):
        """Push the same to n connections, one after the other as they are."""
        for connection in self.connections[:n]:
            connection.push(*elements)

    async def close_idle(self, n):
        """Close n connections that are between transactions, if there are as many."""
        for connection in [c for c in self.connections if c.is_idle()][:n]:
            connection.writer.close()


class Nodes:
    """A database with nodes at the given paths, until stop()."""

    def __init__(self, *paths):
        self.database = {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.nodes = [Node(self.database, path) for path in paths]
        for node in self.nodes:
            self.call(node.listen())

    def call(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    def stop(self):
        async def end():
            for node in self.nodes:
                node.server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.call(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
