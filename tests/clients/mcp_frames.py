"""Plays random key sequences with `act`, and checks that each key was held in exactly its frames.

The connection of some calls is cut. The demo game's own log shows which keys were held in each frame.

    mcp_frames.py URL PROGRAM    over HTTP at URL, and over stdio with PROGRAM, which uses the server at URL

Over each transport, FRAMEWIRE_MCP_CALLS calls (10 by default) are made with the game paused, and as many with the game
running.
"""

import asyncio
import http.client
import json
import os
import random
import subprocess
import sys
import time
import uuid

from mcp import Client, StdioServerParameters

CALLS = int(os.environ.get("FRAMEWIRE_MCP_CALLS", "10"))
# The number of calls over HTTP whose connection is cut. Over stdio, the server is killed during as many calls.
CUTS = 4
KEYS = ["A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"]
# The demo game's frame counter, the address of its log of the keys in each frame, and how many frames the log has.
COUNTER, LOG, LOGGED = "u32[0x02000008]", 0x02001000, 2048
# How many frames of the log one call reads. With the frame counter, the call then has 200 values.
PART = 199
REVISION = "2025-11-25"


def text(result):
    """The JSON of a tool's result."""
    assert not result.is_error, result
    return json.loads(result.content[0].text)


async def call(client, tool, **arguments):
    return text(await client.call_tool(tool, arguments))


def sequence(chooser, parts=5, longest=12):
    """Returns a random key sequence, and the keys of each of its frames."""
    presses, frames = [], []
    for _ in range(chooser.randint(1, parts)):
        keys, count = chooser.sample(range(10), chooser.randint(0, 3)), chooser.randint(1, longest)
        presses.append(f"{'+'.join(KEYS[key] for key in keys) or '.'}:{count}")
        frames += [sum(1 << key for key in keys)] * count
    return " ".join(presses), frames


async def begin(client):
    """Pauses the emulator, resets the game and waits until it counts frames. Returns its frame counter."""
    await call(client, "control", action="pause")
    await call(client, "control", action="reset")
    assert (await call(client, "wait", until=f"{COUNTER} > 0"))["held"]
    return (await call(client, "act", keys=".:1", values=[COUNTER]))["values"][COUNTER]


async def check_log(client, before, after, expected, about):
    """Checks that the game saw exactly these keys in its frames after `before`. False if its log has lost some of them."""
    assert after - before == len(expected), (about, before, after, len(expected))
    places = [LOG + 2 * ((before + 1 + index) % LOGGED) for index in range(len(expected))]
    reads = [f"u16[{place}]" for place in places]
    for first in range(0, len(reads), PART):
        part = reads[first : first + PART]
        seen = (await call(client, "observe", values=[COUNTER, *part]))["values"]
        if seen[COUNTER] - before >= LOGGED:
            return False
        assert [seen[read] for read in part] == expected[first : first + PART], about
    return True


async def check_frames(client, calls, seed):
    """Checks that a game that is paused between calls sees each key of random sequences in exactly its frames."""
    chooser = random.Random(seed)
    before = (await call(client, "act", keys=".:1", values=[COUNTER]))["values"][COUNTER]
    for number in range(calls):
        keys, expected = sequence(chooser)
        reply = await call(client, "act", keys=keys, values=[COUNTER])
        after = reply["values"][COUNTER]
        assert reply["frames"] == len(expected), (seed, number, keys, reply)
        assert await check_log(client, before, after, expected, (seed, number, keys))
        before = after


async def check_running(client, calls, seed):
    """Checks the same as `check_frames`, while frames also run between the calls, at the emulator's own speed."""
    chooser = random.Random(seed)
    await call(client, "control", action="resume")
    for number in range(calls):
        # On a busy machine, the game may write over its log before it is read. Then other keys are played.
        for _ in range(20):
            keys, expected = sequence(chooser)
            reply = await call(client, "act", keys=keys, values=[COUNTER])
            after = reply["values"][COUNTER]
            assert reply["frames"] == len(expected), (seed, number, keys, reply)
            if await check_log(client, after - len(expected), after, expected, (seed, number, keys)):
                break
        else:
            raise AssertionError((seed, number, "the log was lost each time"))
    await call(client, "control", action="pause")


def message(method, params, number=None):
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(body if number is None else {**body, "id": number})


def cut_http(url, arguments, delay):
    """Sends a call, and closes the connection after `delay` seconds, without reading the reply."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    kinds = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    headers = {**kinds, "mcp-protocol-version": REVISION}
    connection.request("POST", "/mcp", message("tools/call", {"name": "act", "arguments": arguments}, 1), headers)
    time.sleep(delay)
    connection.close()


def kill_stdio(command, arguments, delay):
    """Starts a server over stdio, sends a call, and kills the server after `delay` seconds, without reading the reply."""
    about = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        server.stdin.write(message("initialize", about, 1) + "\n")
        server.stdin.flush()
        assert "serverInfo" in server.stdout.readline()
        server.stdin.write(message("notifications/initialized", {}) + "\n")
        server.stdin.write(message("tools/call", {"name": "act", "arguments": arguments}, 2) + "\n")
        server.stdin.flush()
        time.sleep(delay)
        server.kill()


async def check_lost(client, cut, seed):
    """Checks that a call that is cut by `cut` and then repeated with its idempotency key is played once."""
    chooser = random.Random(seed)
    before = (await call(client, "act", keys=".:1", values=[COUNTER]))["values"][COUNTER]
    # A window plays at its own speed, so its sequences are short. An embedded core plays hundreds of frames before the
    # cut.
    longest = 50 if (await call(client, "observe"))["kind"] == "embedded" else 6
    for number in range(CUTS):
        # The cut comes at different times: before the server gets the call, during the call, or after the call has ended.
        delay = chooser.choice([0, 0.001, 0.01, 0.1])
        keys, expected = sequence(chooser, 20, longest)
        arguments = {"keys": keys, "values": [COUNTER], "key": str(uuid.uuid4())}
        about = (seed, number, delay, keys)
        await asyncio.to_thread(cut, arguments, delay)
        first = await call(client, "act", **arguments)
        assert first == await call(client, "act", **arguments), about
        assert first["frames"] == len(expected), (about, first)
        after = (await call(client, "observe", values=[COUNTER]))["values"][COUNTER]
        assert await check_log(client, before, after, expected, about)
        before = after


async def main(url, program):
    seed = random.randrange(1 << 32)
    command = [program, "mcp", "--url", url, "--data", "data"]
    remote = StdioServerParameters(command=program, args=command[1:])
    cuts = [(f"{url}/mcp", lambda *call: cut_http(url, *call)), (remote, lambda *call: kill_stdio(command, *call))]
    for where, cut in cuts:
        async with Client(where, mode="legacy") as client:
            await begin(client)
            begun = time.monotonic()
            await check_frames(client, CALLS, seed)
            print(f"{CALLS} calls while paused, {time.monotonic() - begun:.1f} s, each key in its frames")
            begun = time.monotonic()
            await check_running(client, CALLS, seed)
            print(f"{CALLS} calls while running, {time.monotonic() - begun:.1f} s, each key in its frames")
            await check_lost(client, cut, seed)
            print(f"{CUTS} calls whose connection was cut were repeated, and each was played once")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
