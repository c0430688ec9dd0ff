"""Tools that are functions of the program that drives us."""

from typing import Any

from claude_agent_sdk import ClaudeSDKClient, create_sdk_mcp_server, tool
from common import *
from mcp.types import ToolAnnotations

called = []


@tool("add", "Adds two numbers.", {"a": int, "b": int}, annotations=ToolAnnotations(readOnlyHint=True))
async def add(given: dict[str, Any]):
    called.append(given)
    return {"content": [{"type": "text", "text": str(given["a"] + given["b"])}]}


@tool("fail", "Fails.", {})
async def fail(given):
    return {"content": [{"type": "text", "text": "it broke"}], "is_error": True}


@tool("raise", "Raises.", {})
async def raise_(given):
    raise ValueError("it raised")


@tool("picture", "A picture.", {})
async def picture(given):
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    return {
        "content": [
            {"type": "text", "text": "here"},
            {"type": "image", "data": dot, "mimeType": "image/png"},
        ]
    }


@tool("long", "A long text.", {})
async def long(given):
    return {"content": [{"type": "text", "text": "0123456789" * 15_000}]}


# That it only reads is what it says of itself: it permits nothing.
@tool("secret", "Needs permission.", {}, annotations=ToolAnnotations(readOnlyHint=True))
async def secret(given):
    called.append("secret")
    return {"content": [{"type": "text", "text": "told"}]}


async def main():
    server = create_sdk_mcp_server("calc", "1.2.3", [add, fail, raise_, picture, long, secret])
    allowed = [f"mcp__calc__{name}" for name in ["add", "fail", "raise", "picture", "long"]]
    servers = {"calc": server, "far": {"type": "http", "url": "http://127.0.0.1:9/"}}
    chosen = options(mcp_servers=servers, allowed_tools=allowed, tools=[])
    async with ClaudeSDKClient(chosen) as client:
        waiting = await client.get_mcp_status()
        same([s["status"] for s in waiting["mcpServers"]], ["pending", "pending"])

        messages = await answer(client, "add")
        told = init(messages)
        states = {s["name"]: s["status"] for s in told["mcp_servers"]}
        same(states, {"calc": "connected", "far": "failed"})
        same(told["tools"], sorted([*allowed, "mcp__calc__secret"]))

        found = results(messages)
        same([r.is_error for r in found], [False, True, True, False, False, True])
        same(found[0].content, "42")
        same(called, [{"a": 40, "b": 2}])
        same(found[1].content, "it broke")
        assert "it raised" in found[2].content, found[2]
        same([b["type"] for b in found[3].content], ["text", "image"])
        assert "150000 characters" in found[4].content, found[4].content[:300]
        assert len(found[4].content) < 20_000
        # No one can be asked, and no rule allows it.
        assert "mcp__calc__secret" in found[5].content, found[5]
        same([d["tool_name"] for d in denied(messages)], ["mcp__calc__secret"])
        same(result(messages).result, "Sums.")

        status = await client.get_mcp_status()
        calc, far = status["mcpServers"]
        same((calc["name"], calc["status"]), ("calc", "connected"))
        same(calc["serverInfo"]["version"], "1.2.3")
        same(calc["tools"][0]["name"], "add")
        same(calc["tools"][0]["annotations"]["readOnly"], True)
        same(far["status"], "failed")
        assert "cannot be reached" in far["error"], far
        await client.reconnect_mcp_server("calc")
        status = await client.get_mcp_status()
        same(status["mcpServers"][0]["status"], "connected")
        try:
            await client.reconnect_mcp_server("unknown")
            raise AssertionError("a server that is not there was connected")
        except Exception as error:
            assert "unknown" in str(error), error


run(main)
