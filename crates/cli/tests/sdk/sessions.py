"""Conversations: resumed, continued, forked, kept elsewhere; and files taken back."""

from claude_agent_sdk import (
    ClaudeSDKClient,
    InMemorySessionStore,
    get_session_messages,
    list_sessions,
)
from common import *


async def main():
    first = result(await once("remember 7"))
    known = first.session_id
    listed = list_sessions(directory=str(CWD))
    same([s.session_id for s in listed], [known])
    said = get_session_messages(known, directory=str(CWD))
    same([m.type for m in said], ["user", "assistant"])

    same(result(await once("and now", resume=known)).session_id, known)
    same(result(await once("further", continue_conversation=True)).session_id, known)
    forked = result(await once("apart", resume=known, fork_session=True))
    assert forked.session_id != known

    chosen = "11111111-2222-4333-8444-555555555555"
    same(result(await once("named", session_id=chosen)).session_id, chosen)

    # Kept in a store of the program's own, from which it goes on elsewhere.
    store = InMemorySessionStore()
    kept = result(await once("keep", session_store=store))
    same(store.size, 1)
    again = result(await once("go on", session_store=store, resume=kept.session_id))
    same(again.result, "Gone on.")

    # Files as they were before a message.
    (CWD / "notes.txt").write_text("old\n")
    chosen = options(
        enable_file_checkpointing=True,
        permission_mode="acceptEdits",
        extra_args={"replay-user-messages": None},
    )
    async with ClaudeSDKClient(chosen) as client:
        heard = await answer(client, "change it")
        same((CWD / "notes.txt").read_text(), "new\n")
        asked = [m.uuid for m in heard if isinstance(m, UserMessage) and isinstance(m.content, str)]
        await client.rewind_files(asked[0])
        same((CWD / "notes.txt").read_text(), "old\n")
        try:
            await client.rewind_files("00000000-0000-4000-8000-000000000000")
            raise AssertionError("an unknown message was found")
        except Exception as error:
            assert "no message" in str(error), error


run(main)
