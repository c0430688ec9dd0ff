"""A client that stays: two prompts, a new mode, another model."""

from claude_agent_sdk import ClaudeSDKClient
from claude_agent_sdk.types import PermissionResultDeny
from common import *

asked = []


async def never(name, given, context):
    asked.append(name)
    return PermissionResultDeny(message="no")


async def main():
    async with ClaudeSDKClient(options(can_use_tool=never)) as client:
        info = await client.get_server_info()
        assert isinstance(info["commands"], list), info
        same(info["hook_on_failure_supported"], True)

        first = await answer(client, "one")
        same(result(first).result, "One.")
        same(init(first)["permissionMode"], "default")

        usage = await client.get_context_usage()
        assert 0 < usage["totalTokens"] <= usage["maxTokens"], usage
        same(sum(c["tokens"] for c in usage["categories"]), usage["maxTokens"])
        same(usage["model"], "m-1")

        await client.set_permission_mode("acceptEdits")
        await client.set_model("m-2")
        second = await answer(client, "write it")
        same(init(second)["permissionMode"], "acceptEdits")
        same(init(second)["model"], "m-2")
        same(result(second).result, "Written.")
        same(result(second).session_id, result(first).session_id)
        same((CWD / "written.txt").read_text(), "by the model\n")
        same(asked, [])

        try:
            await client.set_permission_mode("bypassPermissions")
            raise AssertionError("bypassPermissions was allowed")
        except Exception as error:
            assert "bypassPermissions" in str(error), error

        await client.set_model(None)
        third = await answer(client, "and now")
        same(init(third)["model"], "m-1")


run(main)
