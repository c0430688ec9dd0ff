"""The official Python client against `haft mcp serve`: over a pipe, or over HTTP where HAFT_CASE_URL is set."""

import asyncio
import os
import sys

import httpx2
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

CASE = os.environ


async def use(session: ClientSession) -> None:
    await session.initialize()
    tools = (await session.list_tools()).tools
    names = {tool.name for tool in tools}
    assert {"Read", "Bash", "Undo"} <= names, names
    seen = await session.call_tool("Read", {"file_path": "a.txt"})
    assert "forty-two" in seen.content[0].text, seen
    refused = await session.call_tool("Write", {"file_path": "b.txt", "content": "x"})
    assert refused.is_error, refused
    print("ok")


async def main() -> None:
    if url := CASE.get("HAFT_CASE_URL"):
        headers = {"Authorization": f"Bearer {CASE['HAFT_CASE_TOKEN']}"}
        async with httpx2.AsyncClient(headers=headers) as client:
            async with streamable_http_client(url, http_client=client) as streams:
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
