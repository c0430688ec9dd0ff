"""Interrupting: a command, a tool of ours that never answers, a model that stops in the middle."""

import asyncio

from claude_agent_sdk import ClaudeSDKClient, create_sdk_mcp_server, tool
from common import *

started = asyncio.Event()
ended = asyncio.Event()


@tool("wait", "Never answers.", {})
async def wait(given):
    started.set()
    try:
        await asyncio.sleep(3600)
    finally:
        ended.set()


async def interrupted(client, prompt, kind, until, after=None):
    """Asks, interrupts as soon as `until` holds for what was heard, and `after` has happened, and checks how it ended."""
    await client.query(prompt)
    heard = []
    async for message in client.receive_response():
        heard.append(message)
        if until(heard) and len(heard) < 10_000:
            until = lambda _: False
            if after:
                await asyncio.wait_for(after.wait(), 30)
            await client.interrupt()
    end = result(heard)
    same((end.subtype, end.is_error), ("error_during_execution", True))
    marks = [
        m.content[0].text
        for m in heard
        if isinstance(m, UserMessage) and isinstance(m.content[0], TextBlock)
    ]
    assert kind in marks, (kind, heard)
    return heard


async def main():
    server = create_sdk_mcp_server("slow", "1", [wait])
    chosen = options(
        mcp_servers={"slow": server},
        allowed_tools=["Bash", "mcp__slow__wait"],
        include_partial_messages=True,
    )
    in_tool = "[Request interrupted by user for tool use]"
    async with ClaudeSDKClient(chosen) as client:
        await interrupted(client, "sleep", in_tool, lambda heard: calls(heard))
        # Only a function that runs can be told to end.
        await interrupted(client, "wait", in_tool, lambda heard: calls(heard), started)
        # It was, too.
        await asyncio.wait_for(ended.wait(), 30)
        spoke = lambda heard: any(
            getattr(m, "event", {}).get("type") == "content_block_delta" for m in heard
        )
        await interrupted(client, "talk", "[Request interrupted by user]", spoke)
        same(result(await answer(client, "hello")).result, "Still here.")


run(main)
