"""No program is named: the SDK starts its own, which must be the one that records that it was started."""

from claude_agent_sdk import ClaudeSDKError
from common import *


async def main():
    try:
        await once("hi", cli_path=None)
        raise AssertionError("something answered")
    except ClaudeSDKError:
        pass  # It ended at once, whatever was noticed first.


run(main)
