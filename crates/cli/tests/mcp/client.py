"""The official Python client against `haft mcp serve`: over a pipe, or over HTTP where HAFT_CASE_URL is set."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

CASE = os.environ


async def use(session: ClientSession) -> None:
    await session.initialize()
    tools = (await session.list_tools()).tools
    names = {tool.name for tool in tools}
    assert {"Read", "Bash", "Undo"} <= names, names
    seen = await session.call_tool("Read", {"file_path": "a.txt"})
    assert "forty-two" in seen.content[0].text, seen
    refused = await session.call_tool("Write", {"file_path": "b.txt", "content": "x"})
    is_error = getattr(refused, "isError", None)
    if is_error is None:
        is_error = refused.is_error
    assert is_error, refused
    print("ok")


async def main() -> None:
    if url := CASE.get("HAFT_CASE_URL"):
        headers = {"Authorization": f"Bearer {CASE['HAFT_CASE_TOKEN']}"}
        import httpx
        from mcp.client import streamable_http

        connect = getattr(streamable_http, "streamable_http_client", None)
        if connect is not None:
            async with httpx.AsyncClient(headers=headers) as client:
                async with connect(url, http_client=client) as streams:
                    async with ClientSession(streams[0], streams[1]) as session:
                        await use(session)
        else:
            async with streamable_http.streamablehttp_client(url, headers=headers) as streams:
                async with ClientSession(streams[0], streams[1]) as session:
                    await use(session)
        return
    parameters = StdioServerParameters(
        command=CASE["HAFT_CASE_BINARY"], args=["mcp", "serve"], cwd=CASE["HAFT_CASE_DIR"]
    )
    async with stdio_client(parameters) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            await use(session)


asyncio.run(main())
sys.exit(0)
