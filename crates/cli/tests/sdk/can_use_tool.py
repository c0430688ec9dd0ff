"""The callback that is asked: yes, no, yes with another input, rules for later; and a question for a person."""

from claude_agent_sdk import ClaudeSDKClient
from claude_agent_sdk.types import PermissionResultAllow, PermissionResultDeny, PermissionUpdate
from common import *

asked = []


async def decide(name, given, context):
    if name == "AskUserQuestion":
        question = given["questions"][0]["question"]
        return PermissionResultAllow(updated_input={**given, "answers": {question: "Left"}})
    command = given["command"]
    asked.append((name, command, context.tool_use_id))
    if command == "touch denied":
        return PermissionResultDeny(message="not this one")
    if command == "touch original":
        return PermissionResultAllow(updated_input={"command": "touch changed"})
    if command.startswith("mkdir"):
        rules = [s for s in context.suggestions if s.type == "addRules"]
        assert rules and rules[0].rules[0].tool_name == "Bash", context.suggestions
        for one in rules:
            one.destination = "session"
        return PermissionResultAllow(updated_permissions=rules)
    if command == "rm gone":
        return PermissionResultDeny(message="stop", interrupt=True)
    return PermissionResultAllow()


async def main():
    async with ClaudeSDKClient(options(can_use_tool=decide)) as client:
        messages = await answer(client, "make files")
        same(
            asked,
            [
                ("Bash", "touch allowed", "toolu_a"),
                ("Bash", "touch denied", "toolu_b"),
                ("Bash", "touch original", "toolu_c"),
                ("Bash", "mkdir -p one", "toolu_d"),
            ],
        )
        made = sorted(p.name for p in CWD.iterdir() if not p.name.startswith("."))
        # The rule that was offered is for exactly this command, which then runs without a question.
        same(made, ["allowed", "changed", "one"])
        told = results(messages)
        same([r.tool_use_id for r in told], [f"toolu_{c}" for c in "abcde"])
        same([r.is_error for r in told], [False, True, False, False, False])
        assert "not this one" in told[1].content, told[1]
        # They were asked: that is no news to them.
        same(denied(messages), [])
        end = result(messages)
        same([d["tool_use_id"] for d in end.permission_denials], ["toolu_b"])

        told = results(await answer(client, "ask me"))
        assert "Left" in told[0].content, told

        stopped = result(await answer(client, "remove"))
        same((stopped.subtype, stopped.is_error), ("error_during_execution", True))
        assert (CWD / "allowed").exists()


run(main)
