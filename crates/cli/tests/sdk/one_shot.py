"""`query()` with a text, with nothing else said; then with messages one after the other."""

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

    async def several():
        for text in ["one", "two"]:
            yield {"type": "user", "message": {"role": "user", "content": text}}

    messages = await once(several())
    same([m.result for m in messages if isinstance(m, ResultMessage)], ["One.", "Two."])


run(main)
