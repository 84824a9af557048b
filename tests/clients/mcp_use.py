"""Plays the demo game with the official Python SDK of MCP.

    mcp_use.py URL PROGRAM ROOT    ROOT is the checkout

There are three servers: the one at URL, PROGRAM over stdio with a game of its own, and PROGRAM over stdio as a client of
the server at URL. Each is tested with the revisions 2025-11-25 ("legacy" in the SDK) and 2026-07-28 of the protocol.
"""

import asyncio
import http.client
import json
import os
import random
import shutil
import signal
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.subscriptions import SubscriptionLost

from mcp_frames import CALLS, COUNTER, call, check_frames, text

URL, PROGRAM, ROOT = sys.argv[1:]
# This is a copy, because the game's save is written next to the ROM.
ROM = shutil.copy(f"{ROOT}/rom/framewire-demo.gba", "demo.gba")
SYMBOLS = f"{ROOT}/rom/memory-map.toml"
STDIO = StdioServerParameters(command=PROGRAM, args=["mcp", ROM, "--symbols", SYMBOLS, "--data", "data"])
REMOTE = StdioServerParameters(command=PROGRAM, args=["mcp", "--url", URL, "--data", "data"])
SCREEN = "framewire://screen"


async def refused(client, tool, **arguments):
    """The error text of a call that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return result.content[0].text


async def check_tools(client):
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools][:3] == ["act", "observe", "screenshot"] and len(tools) <= 16, tools
    for tool in tools:
        assert tool.annotations is not None and tool.input_schema["additionalProperties"] is False, tool
    by_name = {tool.name: tool for tool in tools}
    assert by_name["read"].annotations.read_only_hint and not by_name["act"].annotations.read_only_hint
    return by_name


async def check_play(client):
    """Tests conditions, changes, pictures, snapshots and errors."""
    assert (await call(client, "wait", until=f"{COUNTER} > 0"))["held"]
    await call(client, "snapshot", action="save", name="begin", replace=True)
    step = {"hold": "Left", "until": "paddle_x < 1000", "frames": 120}
    reply = await call(client, "act", steps=[step], values=["paddle_x", "held"])
    assert reply["ended"] == "paddle_x < 1000" and reply["values"]["paddle_x"] < 1000 and reply["frames"] > 0, reply
    reply = await call(client, "act", keys="A:2 .:600", stop=["state == 1"], values=["state"])
    assert reply["ended"] == "stop: state == 1" and reply["values"] == {"state": 1}, reply
    reply = await call(client, "act", steps=[{"until": "score == 12345", "frames": 5}])
    assert reply["ended"].startswith("timeout") and reply["frames"] == 5, reply

    await call(client, "watch", values=["ball_x", "lives"])
    first = await client.call_tool("act", {"keys": ".:4", "picture": {"scale": 0.5, "grey": True}})
    kinds = [block.type for block in first.content]
    assert kinds == ["text", "image"] and first.content[1].mime_type == "image/png", kinds
    mark = text(first)["picture"]
    again = await client.call_tool("act", {"keys": "Select", "picture": {"unless": mark, "crop": [0, 0, 8, 8]}})
    assert text(again)["picture"] != mark
    frame = (await call(client, "observe"))["frame"]
    outside = {"crop": [0, 0, 8, 999]}
    assert "pixels" in await refused(client, "act", keys=".:9", picture=outside)
    assert (await call(client, "observe"))["frame"] == frame, "no frame is played before the error"
    changes = (await call(client, "watch", values=[COUNTER], frames=3))["changes"]
    counts = [change["changed"][COUNTER] for change in changes]
    assert [new - old for old, new in counts] == [1, 1, 1] and changes[2]["frame"] - changes[0]["frame"] == 2, changes

    before = await call(client, "read", address="paddle_x")
    await call(client, "write", address="scratch", value=77)
    assert (await call(client, "read", address="scratch", count=2))["values"] == [77, 0]
    await call(client, "write", address="scratch", bytes="48656c6c6f")
    assert (await call(client, "text", address="scratch", length=16))["text"] == "Hello"
    assert (await call(client, "text", find="Hello"))["found"][0]["address"] == "0x02000100"
    search = await call(client, "search", action="begin", type="u8", **{"is": "equal"}, value=0x48)
    search = await call(client, "search", action="narrow", id=search["id"], **{"is": "equal"}, value=0x48)
    assert search["count"] > 0, search
    await call(client, "search", action="end", id=search["id"])
    assert "no search" in await refused(client, "search", action="list", id=search["id"])
    name = f"take-{random.randrange(1 << 32)}"
    await call(client, "snapshot", action="save", name=name)
    await call(client, "snapshot", action="delete", name=name)
    assert "no snapshot" in await refused(client, "snapshot", action="load", name=name)
    await call(client, "record", action="start", name=name)
    await call(client, "act", keys="Left:5 .:5")
    ended = await call(client, "record", action="stop")
    assert (ended["name"], ended["frames"]) == (name, 10), ended
    await call(client, "snapshot", action="load", name="begin")
    assert (await call(client, "read", address="paddle_x")) != before
    assert (await call(client, "symbols", contains="paddle"))["symbols"][0].startswith("paddle_")

    await call(client, "act", keys=".:2", note="the paddle is in the middle")
    digest = await client.call_tool("resume", {})
    assert text(digest)["notes"][-1].endswith("the paddle is in the middle"), digest
    assert digest.content[1].type == "image"

    listed = [str(resource.uri) for resource in (await client.list_resources()).resources]
    assert "framewire://screen" in listed and "framewire://snapshots/begin" in listed, listed
    for uri in ["framewire://screen", "framewire://snapshots/begin"]:
        contents = (await client.read_resource(uri)).contents[0]
        assert contents.mime_type == "image/png" and contents.blob.startswith("iVBOR"), contents
    assert "paddle_x" in (await client.read_resource("framewire://symbols")).contents[0].text
    names = [prompt.name for prompt in (await client.list_prompts()).prompts]
    assert names == ["find_address", "reproduce_bug", "play_until"], names
    prompt = await client.get_prompt("play_until", {"goal": "level 2 begins"})
    assert "level 2 begins" in prompt.messages[0].content.text

    assert "scroe" in await refused(client, "act", keys="A", values=["scroe"])
    assert "not a press" in await refused(client, "act", keys="Q:3")
    assert "nothing to play" in await refused(client, "act")
    assert "unknown field" in await refused(client, "observe", expressions=[])
    assert "no snapshot" in await refused(client, "snapshot", action="load", name="nothing-like-it")


async def start_game(client):
    # Without a reset, a game that runs by itself could be over, and then keys do not change the picture.
    await call(client, "control", action="reset")


async def change_picture(client):
    await call(client, "act", keys=".:60 Start:2 .:60")


async def next_update(events):
    """The resource of the next change that a stream reports."""
    return (await asyncio.wait_for(anext(events), 30)).uri


async def listen_once(client):
    """Starts a new game, and returns the resource of the first change that is reported."""
    await start_game(client)
    async with client.listen(resource_subscriptions=[SCREEN]) as events:
        await change_picture(client)
        return await next_update(events)


async def check_subscriptions(mode):
    """A client is notified when the picture changes, over stdio and over HTTP.

    In the earlier revision, a subscription over HTTP needs a session.
    """
    if mode == "legacy":
        for where in [STDIO, f"{URL}/mcp"]:
            heard = asyncio.Queue()
            async with Client(where, mode=mode, message_handler=heard.put) as client:
                assert client.server_capabilities.resources.subscribe
                await start_game(client)
                await client.subscribe_resource(SCREEN)
                await change_picture(client)
                message = await asyncio.wait_for(heard.get(), 30)
                assert message.method == "notifications/resources/updated", message
                assert str(message.params.uri) == SCREEN, message
                await client.unsubscribe_resource(SCREEN)
        return
    for where in [STDIO, f"{URL}/mcp", REMOTE]:
        async with Client(where, mode=mode) as client:
            assert await listen_once(client) == SCREEN, where


async def until_free(listen):
    """Repeats `listen` while too many streams are open."""
    end = time.monotonic() + 60
    while True:
        try:
            return await listen()
        except SubscriptionLost:
            assert time.monotonic() < end
            # The server must notice that streams, including those of this attempt, were closed. That takes up to 3.5 s.
            await asyncio.sleep(5)


async def check_most_listeners():
    """The 17th stream that listens over HTTP gets an error. After the others are closed, a new one can listen."""
    async with Client(f"{URL}/mcp", mode="2026-07-28") as client:

        async def open_streams():
            await start_game(client)
            async with AsyncExitStack() as streams:
                opening = [client.listen(resource_subscriptions=[SCREEN]) for _ in range(16)]
                opened = [await streams.enter_async_context(stream) for stream in opening]
                await change_picture(client)
                for events in opened:
                    await next_update(events)
                return streams.pop_all()

        async with await until_free(open_streams):
            try:
                raise AssertionError(await listen_once(client))
            except SubscriptionLost:
                pass
        assert await until_free(lambda: listen_once(client)) == SCREEN


async def check_resume(mode):
    """The server is killed in the middle of a call. From the next server, `resume` returns the notes and the snapshot."""
    # The server has a data folder of its own. A shell starts it, and writes its process id to a file.
    begin = ["-c", 'echo $$ >server.pid; exec "$@"', "sh", PROGRAM]
    args = [*begin, "mcp", ROM, "--symbols", SYMBOLS, "--data", f"killed-{mode}"]
    server = StdioServerParameters(command="sh", args=args)
    values = ["paddle_x", "score", COUNTER]
    async with Client(server, mode=mode) as client:
        assert (await call(client, "wait", until=f"{COUNTER} > 0"))["held"]
        await call(client, "record", action="start", name="attempt")
        await call(client, "act", keys="Start:2 .:60", note="level 1 has begun")
        saved = await call(client, "snapshot", action="save", name="level-1", note="a good beginning")
        there = (await call(client, "observe", values=values))["values"]
        last = await call(client, "act", keys="Left:30", note="the paddle is at the left")
        under_way = asyncio.create_task(client.call_tool("act", {"keys": ".:216000"}))
        await asyncio.sleep(0.3)
        assert not under_way.done(), under_way.result()
        os.kill(int(Path("server.pid").read_text()), signal.SIGKILL)
        (ended,) = await asyncio.wait_for(asyncio.gather(under_way, return_exceptions=True), 30)
        assert isinstance(ended, Exception), ended
    async with Client(server, mode=mode) as client:
        result = await client.call_tool("resume", {})
        digest = text(result)
        begun, left = digest["notes"]
        assert begun.startswith(f"frame {saved['frame']} (recording attempt): level 1 has begun"), digest
        assert left == f"frame {last['frame']} (recording attempt): the paddle is at the left", digest
        (snapshot,) = digest["snapshots"]
        assert (snapshot["name"], snapshot["note"]) == ("level-1", "a good beginning"), digest
        assert snapshot["frame"] == saved["frame"] and digest["title"] == snapshot["title"], digest
        assert result.content[1].type == "image" and digest["picture"] and digest["frame"] < saved["frame"], digest
        await call(client, "snapshot", action="load", name="level-1")
        assert (await call(client, "observe", values=values))["values"] == there


async def check_rights():
    """A client that asks for read-only access gets only tools that change nothing."""
    async with Client(f"{URL}/mcp?read_only=true&toolsets=play", mode="legacy") as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["observe", "screenshot", "resume"], names
        assert "not offered" in await refused(client, "act", keys="A")
    only_reads = StdioServerParameters(command=PROGRAM, args=[*STDIO.args, "--read-only"])
    async with Client(only_reads, mode="legacy") as client:
        before = await call(client, "observe", values=[COUNTER, "scratch[0]"])
        offered = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert all(tool.annotations.read_only_hint for tool in offered.values()), offered
        arguments = {"act": {"keys": "A"}, "write": {"address": "scratch", "value": 1}, "control": {"action": "reset"}}
        for tool in ["act", "write", "control", "snapshot", "watch", "wait", "record", "load"]:
            assert "not offered" in await refused(client, tool, **arguments.get(tool, {})), tool
        assert await call(client, "observe", values=[COUNTER, "scratch[0]"]) == before
    # A request from a web page of another origin is refused, and so is a request with an unknown host name.
    for headers in [{"origin": "http://evil.example"}, {"host": "evil.example"}]:
        assert post({"id": 1, "method": "tools/list", "params": {}}, **headers).status == 403, headers


async def check_script(mode):
    """The tool `script` runs Lua code. Over stdio, the server's --allow-script is enough to offer it.

    The server at URL does not allow scripts. There, a client that asks for the tool gets an error that names the option,
    and the tool is not offered to other clients.
    """
    allowed = StdioServerParameters(command=PROGRAM, args=[*STDIO.args, "--allow-script"])
    async with Client(allowed, mode=mode) as client:
        tools = (await client.list_tools()).tools
        assert tools[-1].name == "script" and len(tools) == 16, tools
        hints = tools[-1].annotations
        assert hints.destructive_hint and hints.open_world_hint and not hints.read_only_hint, hints
        await call(client, "write", address="scratch", value=7)
        reply = await call(client, "script", code="print('a') return emu:read8(0x02000100), {emu:getGameTitle()}")
        assert (reply["values"], reply["output"]) == ([7, ["FRAMEWIRE"]], ["a"]), reply
        assert "script:2: " in await refused(client, "script", code="local x\nreturn x.y")
    async with Client(f"{URL}/mcp?toolsets=script", mode=mode) as client:
        assert "--allow-script" in await refused(client, "script", code="emu:write8(0x02000100, 1)")
    async with Client(f"{URL}/mcp", mode=mode) as client:
        assert "not offered" in await refused(client, "script", code="emu:write8(0x02000100, 1)")


def post(body, **headers):
    """Sends a POST to /mcp, and returns the reply with its body as `text`."""
    connection = http.client.HTTPConnection(URL.removeprefix("http://"))
    usual = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **body}), {**usual, **headers})
    reply = connection.getresponse()
    reply.text = reply.read().decode()
    return reply


def check_sessions():
    """Sessions begin with `initialize` and end with DELETE. Their number is limited, and requests work without one."""
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    opened = []
    while True:
        reply = post({"id": 1, "method": "initialize", "params": about})
        assert reply.status == 200, reply.text
        if reply.headers["mcp-session-id"] is None:
            break
        opened.append(reply.headers["mcp-session-id"])
        assert len(opened) <= 16, "one sender has more than 16 sessions"
    assert '"subscribe"' not in reply.text, reply.text
    tools = {"id": 2, "method": "tools/list"}
    assert post(tools).status == 200
    first, host = {"mcp-session-id": opened[0]}, URL.removeprefix("http://")
    assert '"tools"' in post(tools, **first).text
    for status in [204, 404]:
        connection = http.client.HTTPConnection(host)
        connection.request("DELETE", "/mcp", headers=first)
        assert connection.getresponse().status == status, status
    assert post(tools, **first).status == 404
    for session in opened[1:]:
        connection = http.client.HTTPConnection(host)
        connection.request("DELETE", "/mcp", headers={"mcp-session-id": session})
        assert connection.getresponse().status == 204


async def main():
    seed = random.randrange(1 << 32)
    for mode in ["legacy", "2026-07-28"]:
        await check_subscriptions(mode)
        await check_resume(mode)
        await check_script(mode)
        for where in [STDIO, f"{URL}/mcp", REMOTE]:
            async with Client(where, mode=mode) as client:
                assert client.protocol_version == ("2025-11-25" if mode == "legacy" else mode)
                await check_tools(client)
                if where is not STDIO:
                    await call(client, "control", action="pause")
                    # The game has run by itself until now, and may be over.
                    await call(client, "control", action="reset")
                await check_play(client)
                if where is STDIO:
                    await check_frames(client, CALLS, seed)
    await check_rights()
    check_sessions()
    await check_most_listeners()


asyncio.run(main())
