"""Drives `haft acp` with the official Python package: client.py HAFT SCRIPT DIRECTORY."""

import asyncio
import sys
from pathlib import Path

from acp import PROTOCOL_VERSION, spawn_agent_process, text_block
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    FileSystemCapabilities,
    ImageContentBlock,
    McpServerStdio,
    ReadTextFileResponse,
    RequestPermissionResponse,
    WriteTextFileResponse,
)

HAFT, SCRIPT, CWD = sys.argv[1:]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR4nGNQDplnOyuD4eYs7fOBHgAjtgVbcmtnSQAAAABJRU5ErkJggg=="


class Editor:
    """What the agent says, and what it is answered."""

    def __init__(self):
        self.updates = []
        self.questions = []
        self.answer = "allow"
        self.at_update = lambda update: None
        self.unsaved = None
        self.written = []

    def on_connect(self, conn):
        self.agent = conn

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)
        self.at_update(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions.append(tool_call)
        outcome = AllowedOutcome(outcome="selected", option_id=self.answer)
        return RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, path, session_id, **_):
        return ReadTextFileResponse(content=self.unsaved or Path(path).read_text())

    async def write_text_file(self, content, path, session_id, **_):
        self.written.append(content)
        Path(path).write_text(content)
        self.unsaved = None
        return WriteTextFileResponse()

    def of(self, kind):
        return [update for update in self.updates if update.session_update == kind]

    def said(self, kind):
        return "".join(getattr(update.content, "text", "") for update in self.of(kind))


def text_of():
    return (Path(CWD) / "a").read_text()


async def main():
    editor = Editor()
    async with spawn_agent_process(editor, HAFT, "acp", "--script", SCRIPT, cwd=CWD) as (agent, process):
        can = ClientCapabilities(fs=FileSystemCapabilities(read_text_file=True, write_text_file=True))
        begun = await agent.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=can)
        assert begun.protocol_version == 1 and begun.agent_info.name == "haft", begun
        server = McpServerStdio(name="files", command=HAFT, args=["mcp", "serve", "--tools", "Read", "--cwd", CWD], env=[])
        session = await agent.new_session(cwd=CWD, mcp_servers=[server])
        id = session.session_id
        assert session.modes.current_mode_id == "default"

        async def prompt(*blocks):
            editor.updates.clear()
            return (await agent.prompt(session_id=id, prompt=list(blocks))).stop_reason

        assert await prompt(text_block("hi")) == "end_turn"
        assert editor.said("agent_message_chunk") == "Hello", editor.updates

        await prompt(text_block("edit"))
        diff = editor.questions[0].content[0]
        assert (diff.type, diff.old_text, diff.new_text) == ("diff", "one\n", "two\n"), diff
        assert text_of() == "two\n"

        editor.answer = "reject"
        assert await prompt(text_block("edit again")) == "end_turn"
        assert editor.of("tool_call_update")[-1].status == "failed"
        assert text_of() == "two\n"

        editor.answer = "allow"
        cancels = []

        def cancel(update):
            if getattr(update, "status", None) == "in_progress":
                cancels.append(asyncio.ensure_future(agent.cancel(session_id=id)))

        editor.at_update = cancel
        assert await prompt(text_block("sleep")) == "cancelled"
        editor.at_update = lambda update: None

        image = ImageContentBlock(type="image", data=PIXEL, mime_type="image/png")
        await prompt(text_block("what is this?"), image)
        assert editor.said("agent_message_chunk") == "Four pixels."

        await agent.set_session_mode(session_id=id, mode_id="acceptEdits")
        asked = len(editor.questions)
        await prompt(text_block("edit once more"))
        assert len(editor.questions) == asked and text_of() == "three\n"

        await prompt(text_block("use the server"))
        states = [update.status for update in editor.of("tool_call_update") if update.status]
        assert states[-1] == "completed", editor.updates

        await agent.close_session(session_id=id)
        listed = await agent.list_sessions(cwd=CWD)
        assert listed.sessions[0].session_id == id
        editor.updates.clear()
        await agent.load_session(session_id=id, cwd=CWD, mcp_servers=[])
        assert editor.said("user_message_chunk").startswith("hi"), editor.updates
        assert len(editor.of("tool_call")) >= 5
        assert await prompt(text_block("and now?")) == "end_turn"
        assert editor.said("agent_message_chunk") == "Hello", editor.updates

        # What is typed and not saved is read, saved, and then edited.
        editor.unsaved = "three\none more line, not saved\n"
        await prompt(text_block("edit it"))
        assert editor.written == ["three\none more line, not saved\n"], editor.written
        assert text_of() == "three\ntwo more line, not saved\n", text_of()

        try:
            await agent.load_session(session_id="nope", cwd=CWD, mcp_servers=[])
            raise AssertionError("a session that does not exist was loaded")
        except RequestError as error:
            assert error.code == -32002, error
    assert await process.wait() == 0, process.returncode


asyncio.run(main())
