"""A tool of a server is asked for permission."""

import json

from claude_agent_sdk import ClaudeSDKClient, create_sdk_mcp_server, tool
from common import *

asked = []


@tool("ask", "Decides.", {"tool_name": str, "input": dict, "tool_use_id": str})
async def ask(given):
    asked.append((given["tool_name"], given["input"]["command"], given["tool_use_id"]))
    said = {
        "touch yes": json.dumps({"behavior": "allow", "updatedInput": {"command": "touch yes2"}}),
        "touch no": json.dumps({"behavior": "deny", "message": "the tool says no"}),
        "touch odd": "perhaps",
    }
    return {"content": [{"type": "text", "text": said[given["input"]["command"]]}]}


async def main():
    server = create_sdk_mcp_server("gate", "1", [ask])
    chosen = options(mcp_servers={"gate": server}, permission_prompt_tool_name="mcp__gate__ask")
    async with ClaudeSDKClient(chosen) as client:
        messages = await answer(client, "go")
    same(
        asked,
        [
            ("Bash", "touch yes", "toolu_a"),
            ("Bash", "touch no", "toolu_b"),
            ("Bash", "touch odd", "toolu_c"),
        ],
    )
    told = results(messages)
    same([r.is_error for r in told], [False, True, True])
    assert "the tool says no" in told[1].content, told[1]
    assert "mcp__gate__ask" not in init(messages)["tools"]
    made = sorted(p.name for p in CWD.iterdir() if not p.name.startswith("."))
    same(made, ["yes2"])
    same(denied(messages), [])

    # A tool that is not there lets nothing through.
    chosen = options(mcp_servers={"gate": server}, permission_prompt_tool_name="mcp__gate__nobody")
    async with ClaudeSDKClient(chosen) as client:
        end = result(await answer(client, "go"))
        same((end.subtype, end.num_turns), ("error_during_execution", 0))
        assert "mcp__gate__nobody is not available" in end.errors[0], end


run(main)
