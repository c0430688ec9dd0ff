"""What the SDK's own end-to-end tests hold a program to, said again as cases of ours."""

import json
import os
import shutil
import uuid

from claude_agent_sdk import (
    AgentDefinition,
    AssistantMessage,
    ClaudeSDKClient,
    ConversationResetMessage,
    InMemorySessionStore,
    ProcessError,
    ResultMessage,
    get_session_messages,
    get_subagent_messages,
    get_subagent_messages_from_store,
    list_subagents,
    list_subagents_from_store,
    query,
)
from common import CWD, init, options as common_options, run


MODEL = os.environ["HAFT_CASE_MODEL"]


def options(**more):
    return common_options(model=MODEL, **more)


async def said(client, prompt):
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def last(messages):
    assert isinstance(messages[-1], ResultMessage), messages
    return messages[-1]


async def clearing():
    async with ClaudeSDKClient(options()) as client:
        first = last(await said(client, "Reply with exactly: one"))
        cleared = await said(client, "/clear")
        reset = next(m for m in cleared if isinstance(m, ConversationResetMessage))
        assert reset.session_id == first.session_id and reset.uuid
        assert last(cleared).session_id == reset.new_conversation_id
        assert reset.new_conversation_id != first.session_id
        again = last(await said(client, "Reply with exactly: two"))
        assert (again.result, again.session_id) == ("two", reset.new_conversation_id)


async def origins():
    async def one(**more):
        message = {"role": "user", "content": "Reply with exactly: one"}
        yield {"type": "user", "message": message, "parent_tool_use_id": None, **more}

    async with ClaudeSDKClient(options()) as client:
        assert last(await said(client, one(origin={"kind": "human"}))).origin == {"kind": "human"}
        assert last(await said(client, one())).origin is None


async def truncating():
    async with ClaudeSDKClient(options()) as client:
        first = await said(client, "Reply with exactly: one")
        second = last(await said(client, "Reply with exactly: two"))
    keep = next(m for m in first if isinstance(m, AssistantMessage)).uuid
    chain = get_session_messages(second.session_id, directory=str(CWD))
    at = [m.uuid for m in chain].index(keep)
    prompt = chain[at + 1].uuid

    def resumed(drops):
        return options(
            resume=second.session_id, fork_session=True, resume_session_at=keep, resume_drops_turn=drops
        )

    forked = [m async for m in query(prompt="Reply with exactly: three", options=resumed(prompt))]
    assert last(forked).session_id != second.session_id
    prompts = [
        m.message["content"]
        for m in get_session_messages(last(forked).session_id, directory=str(CWD))
        if m.type == "user"
    ]
    assert prompts == ["Reply with exactly: one", "Reply with exactly: three"], prompts
    try:
        async for _ in query(prompt="no", options=resumed(str(uuid.uuid4()))):
            pass
        raise AssertionError("it was not refused")
    except ProcessError as error:
        assert "Resume rejected by --resume-drops-turn:" in str(error), error


async def subagents():
    store = InMemorySessionStore()
    agent = AgentDefinition(description="Greets.", prompt="Greet.", background=False)
    prompt = "Use the Agent tool exactly once with subagent_type 'greeter', prompt 'say hi'."
    more = {"session_store": store, "agents": {"greeter": agent}, "allowed_tools": ["Agent", "Task"]}
    messages = [m async for m in query(prompt=prompt, options=options(**more))]
    session = last(messages).session_id
    calls = {
        block.id
        for m in messages
        if isinstance(m, AssistantMessage) and m.parent_tool_use_id is None
        for block in m.content
        if getattr(block, "name", None) in ("Agent", "Task")
    }
    assert len(calls) == 1, messages
    here = [get_subagent_messages(session, one) for one in list_subagents(session)]
    there = [
        await get_subagent_messages_from_store(store, session, one)
        for one in await list_subagents_from_store(store, session)
    ]
    for found in (here, there):
        assert len(found) == 1 and found[0], found
        assert {m.parent_tool_use_id for m in found[0]} == calls
        assert all(m.parent_agent_id is None for m in found[0])


async def settings_of_the_user_after_a_resume():
    store, config = InMemorySessionStore(), CWD.parent / "config"
    config.mkdir()
    more = {"session_store": store, "env": {"CLAUDE_CONFIG_DIR": str(config)}}

    async def style(**resume):
        messages = [m async for m in query(prompt="Reply with exactly: x", options=options(**more, **resume))]
        return init(messages)["output_style"], last(messages).session_id

    first, session = await style()
    assert first == "default"
    (config / "settings.json").write_text(json.dumps({"outputStyle": "Explanatory"}))
    shutil.rmtree(config / "projects")
    assert await style(resume=session) == ("Explanatory", session)


async def main():
    for case in (clearing, origins, truncating, subagents, settings_of_the_user_after_a_resume):
        await case()


run(main)
