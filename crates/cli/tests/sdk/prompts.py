"""System prompts, shapes of answers, pieces of replies."""

from claude_agent_sdk import StreamEvent
from common import *


async def main():
    await once("hi", system_prompt="Be a clerk.")
    await once("hi", system_prompt={"type": "preset", "preset": "claude_code", "append": "Be kind."})

    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "required": ["n"],
        "additionalProperties": False,
    }
    shaped = await once("a number", output_format={"type": "json_schema", "schema": schema})
    same(result(shaped).structured_output, {"n": 42})

    pieces = await once("hi", include_partial_messages=True)
    events = [m.event["type"] for m in pieces if isinstance(m, StreamEvent)]
    same(
        events,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop",
        ],
    )
    same(texts(pieces), ["In pieces."])


run(main)
