"""Hooks that are functions: one refuses, one adds, one changes an input."""

from claude_agent_sdk import ClaudeSDKClient, HookMatcher
from common import *

seen = []


async def before(given, tool_use_id, context):
    seen.append(("before", given["tool_name"], tool_use_id))
    said = {"hookEventName": "PreToolUse"}
    if given["tool_input"].get("command") == "touch refused":
        said |= {"permissionDecision": "deny", "permissionDecisionReason": "the hook says no"}
    elif given["tool_input"].get("command") == "touch before":
        said |= {"permissionDecision": "allow", "updatedInput": {"command": "touch after"}}
    return {"hookSpecificOutput": said}


async def after(given, tool_use_id, context):
    seen.append(("after", given["tool_name"], tool_use_id))
    said = {"hookEventName": "PostToolUse", "additionalContext": "the hook adds this"}
    return {"hookSpecificOutput": said}


async def prompt(given, tool_use_id, context):
    seen.append(("prompt", given["prompt"]))
    said = {"hookEventName": "UserPromptSubmit", "additionalContext": "the hook knows more"}
    return {"hookSpecificOutput": said}


async def main():
    hooks = {
        "PreToolUse": [HookMatcher(matcher="Bash", hooks=[before])],
        "PostToolUse": [HookMatcher(matcher="Read", hooks=[after], timeout=60)],
        "UserPromptSubmit": [HookMatcher(hooks=[prompt])],
    }
    (CWD / "a.txt").write_text("forty-two\n")
    async with ClaudeSDKClient(options(hooks=hooks)) as client:
        messages = await answer(client, "go")
    same(
        seen,
        [
            ("prompt", "go"),
            ("before", "Bash", "toolu_a"),
            ("before", "Bash", "toolu_b"),
            ("after", "Read", "toolu_c"),
        ],
    )
    told = results(messages)
    same([r.is_error for r in told], [True, False, False])
    assert "the hook says no" in told[0].content, told[0]
    assert not (CWD / "refused").exists() and not (CWD / "before").exists()
    assert (CWD / "after").exists()
    same(denied(messages), [])
    same([d["tool_use_id"] for d in result(messages).permission_denials], ["toolu_a"])


run(main)
