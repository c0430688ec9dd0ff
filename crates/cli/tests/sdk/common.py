"""What the cases share: options that point to our binary, and ways to look at what came back."""

import asyncio
import os
import sys
from pathlib import Path

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

CWD = Path(os.environ["HAFT_CASE_DIR"])


def options(**more):
    """Options that start our binary, which asks the model on this machine."""
    env = {
        "ANTHROPIC_BASE_URL": os.environ["HAFT_CASE_URL"],
        "ANTHROPIC_API_KEY": "key",
        "CLAUDE_CODE_MAX_RETRIES": "0",
        **more.pop("env", {}),
    }
    given = {
        "cli_path": os.environ["HAFT_CASE_BINARY"],
        "cwd": CWD,
        "model": "m-1",
        "env": env,
        "stderr": lambda line: print("stderr:", line, file=sys.stderr),
        **more,
    }
    return ClaudeAgentOptions(**given)


async def once(prompt, **more):
    """All messages of a one-shot query."""
    return [message async for message in query(prompt=prompt, options=options(**more))]


async def answer(client, prompt):
    """All messages that answer a prompt."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def init(messages):
    found = [m for m in messages if isinstance(m, SystemMessage) and m.subtype == "init"]
    assert len(found) == 1, messages
    return found[0].data


def denied(messages):
    """What was announced as denied."""
    return [
        m.data
        for m in messages
        if isinstance(m, SystemMessage) and m.subtype == "permission_denied"
    ]


def result(messages):
    assert isinstance(messages[-1], ResultMessage), messages
    return messages[-1]


def texts(messages):
    """What the model said."""
    return [
        block.text
        for m in messages
        if isinstance(m, AssistantMessage)
        for block in m.content
        if isinstance(block, TextBlock)
    ]


def calls(messages):
    return [
        block
        for m in messages
        if isinstance(m, AssistantMessage)
        for block in m.content
        if isinstance(block, ToolUseBlock)
    ]


def results(messages):
    """The results of calls, in order."""
    return [
        block
        for m in messages
        if isinstance(m, UserMessage) and isinstance(m.content, list)
        for block in m.content
        if isinstance(block, ToolResultBlock)
    ]


def same(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def run(main):
    """Runs a case; one that hangs fails."""
    asyncio.run(asyncio.wait_for(main(), 120))
    print("done")
