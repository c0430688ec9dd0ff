"""`query()` with a text, with nothing else said."""

from common import *


async def main():
    messages = await once("hi")
    same([type(m).__name__ for m in messages], ["SystemMessage", "AssistantMessage", "ResultMessage"])
    told = init(messages)
    same(told["model"], "m-1")
    same(told["apiKeySource"], "ANTHROPIC_API_KEY")
    same(told["mcp_servers"], [])
    assert {"Bash", "Read", "Edit", "Write"} <= set(told["tools"]), told["tools"]
    same(texts(messages), ["Hello."])
    end = result(messages)
    same((end.subtype, end.is_error, end.num_turns, end.result), ("success", False, 1, "Hello."))
    same(end.usage["output_tokens"], 40)
    same(end.permission_denials, [])
    same(end.session_id, told["session_id"])


run(main)
