"""The isolation canaries of the command line: for any endpoint or pair, without a plugin in the engine.

Each check is a module with `NAME`, `HOSTILE` and `async def check(session) -> Result`; each is first run against a
stand-in that is broken on purpose (`controls`), and counts only when it sees that one fail.
"""
