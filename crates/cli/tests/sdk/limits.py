"""Limits: rounds, tools that are allowed and those that are not."""

from claude_agent_sdk import ResultError
from common import *


async def main():
    # One round: its tools run, and nobody is asked again.
    heard = []
    try:
        async for message in query(
            prompt="go", options=options(max_turns=1, allowed_tools=["Bash(touch *)"])
        ):
            heard.append(message)
        raise AssertionError("no error came")
    except ResultError as error:
        assert "Reached maximum number of turns (1)" in str(error), error
    end = result(heard)
    same((end.subtype, end.is_error), ("error_max_turns", True))
    assert (CWD / "made").exists()

    # A rule allows one command and not the other.
    messages = await once("go", allowed_tools=["Bash(touch *)"])
    same([r.is_error for r in results(messages)], [False, True])
    assert (CWD / "again").exists() and not (CWD / "folder").exists()
    told = denied(messages)
    same([d["tool_use_id"] for d in told], ["toolu_c"])
    assert told[0]["decision_reason_type"] and told[0]["message"], told
    same([d["tool_use_id"] for d in result(messages).permission_denials], ["toolu_c"])

    # A tool that is not allowed at all is not offered.
    messages = await once("go", disallowed_tools=["Bash"], permission_mode="acceptEdits")
    assert "Bash" not in init(messages)["tools"]
    same([r.is_error for r in results(messages)], [True])
    same([d["decision_reason_type"] for d in denied(messages)], ["rule"])


run(main)
