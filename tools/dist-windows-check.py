#!/usr/bin/env python3
"""Tests the archive of `make dist-windows` with Wine and a stock mGBA in a window.

    tools/dist-windows-check.py ARCHIVE WINDOW    WINDOW is the built example `window` of crates/lab

It prints a line for each check that passes. At the first check that fails, it ends with exit code 1.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG = 120
"""The time limit for a program, in seconds. Wine's first start takes a long time: it creates a Windows folder."""


def check(what: str, good: object, found: object) -> None:
    """Prints that a check passed, if `good` is true. Otherwise ends this program and prints what was `found`."""
    if not good:
        sys.exit(f"windows-check: {what}: fails: {found!r}")
    print(f"windows-check: {what}: works", flush=True)


class Wine:
    def __init__(self, folder: Path) -> None:
        self.program = folder / "framewire.exe"
        self.folder = folder
        self.environment = {**os.environ, "WINEPREFIX": str(ROOT / "target/wine"), "WINEDEBUG": "-all"}

    def start(self, *words: str, errors: int | None = None) -> subprocess.Popen[str]:
        """Starts the program. `errors` is the argument `stderr` of `subprocess.Popen`; with None, the errors are shown."""
        command = ["wine", str(self.program), *words]
        null, pipe = subprocess.DEVNULL, subprocess.PIPE
        return subprocess.Popen(
            command, env=self.environment, cwd=self.folder, stdin=null, stdout=pipe, stderr=errors, text=True
        )

    def run(self, *words: str) -> tuple[int, str]:
        process = self.start(*words, errors=subprocess.PIPE)
        try:
            output, errors = process.communicate(timeout=LONG)
        except subprocess.TimeoutExpired:
            process.kill()
            sys.exit(f"windows-check: framewire {' '.join(words)}: still running after {LONG} s")
        return process.returncode, output + errors


class Http:
    def __init__(self, url: str) -> None:
        self.url = url

    def bytes(self, method: str, path: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as reply:
            return reply.read()

    def text(self, method: str, path: str) -> str:
        return self.bytes(method, path).decode()

    def json(self, method: str, path: str, body: object = None) -> dict:
        return json.loads(self.bytes(method, path, body))


def requests(http: Http, folder: Path) -> None:
    title = http.text("GET", "/core/getgametitle")
    check("GET /core/getgametitle", title == "FRAMEWIRE", title)
    first = int(http.text("GET", "/core/currentframe"))
    deadline = time.monotonic() + 30
    while int(http.text("GET", "/core/currentframe")) == first and time.monotonic() < deadline:
        time.sleep(0.05)
    check("GET /core/currentframe", int(http.text("GET", "/core/currentframe")) > first, first)
    http.text("POST", "/core/write32?address=0x02030000&value=305419896")
    read = http.text("GET", "/core/read32?address=0x02030000")
    check("POST /core/write32, GET /core/read32", int(read) == 0x12345678, read)
    read = http.text("GET", "/core/readrange?address=0x02030000&length=4")
    check("GET /core/readrange", read.replace(",", "").lower() == "78563412", read)
    for route in ("button/tap?button=A", "button/hold?button=Left&duration=5", "button/tapmany?buttons=A&buttons=Up"):
        http.text("POST", f"/mgba-http/{route}")
    held = http.text("POST", "/mgba-http/button/add?button=B") + http.text("GET", "/mgba-http/button/get?button=B")
    check("mGBA-http's buttons", "1" in held or "true" in held.lower(), held)
    http.text("POST", "/mgba-http/button/clear?button=B")
    domain = http.text("GET", "/memorydomain/size?memoryDomain=wram")
    check("GET /memorydomain/size", int(domain) == 256 << 10, domain)
    picture = http.bytes("GET", "/screen.png")
    check("GET /screen.png", picture.startswith(b"\x89PNG"), picture[:20])
    echo = http.text("GET", "/mgbaendpoint?message=hello")
    check("GET /mgbaendpoint", "hello" in echo, echo)
    ops = [{"op": "read", "address": "0x02030000", "type": "u32"}, {"op": "tap", "keys": ["A"]}]
    reply = http.json("POST", "/v1/batch", {"ops": ops})
    check("POST /v1/batch", "305419896" in json.dumps(reply), reply)
    ops = [{"op": "write", "address": "0x02030000", "type": "u32", "value": 7}]
    http.json("POST", "/v1/batch", {"ops": ops})
    reply = http.json("POST", "/v1/wait", {"until": "u32[0x02030000] == 7", "frames": 60})
    check("POST /v1/wait", reply.get("frame"), reply)
    state = http.bytes("GET", "/v1/state")
    check("GET /v1/state", len(state) > 1000, len(state))
    request = urllib.request.Request(http.url + "/v1/state", state, {"Content-Type": "application/octet-stream"}, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as answer:
        check("PUT /v1/state", answer.status == 200, answer.status)
    snapshot = http.json("POST", "/v1/snapshots", {"name": "here"})
    check("POST /v1/snapshots, a file on Windows", any(folder.rglob("*here*")), snapshot)


def test(archive: Path, window: Path, work: Path) -> None:
    """Unpacks the archive in the empty folder `work`, and tests its program."""
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(work)
    folder = next(work.iterdir())
    # Wine 8 has no bcryptprimitives.dll, from which Rust's standard library gets random numbers.
    compiler = ["x86_64-w64-mingw32-gcc", "-O2", "-shared", "-o", str(folder / "bcryptprimitives.dll")]
    subprocess.run([*compiler, str(ROOT / "tools/dist/prng.c"), "-ladvapi32"], check=True)
    wine = Wine(folder)
    code, text = wine.run("--version")
    check("--version", code == 0 and text.startswith("framewire "), text)
    code, text = wine.run("script", "--output", "again.lua")
    check("script", (folder / "again.lua").read_bytes() == (folder / "framewire.lua").read_bytes(), text)
    code, text = wine.run("serve", "--rom", "game.gba")
    check("a ROM is refused with a reason", code != 0 and "no embedded core" in text, text)
    mgba = subprocess.Popen([str(window)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    server = None
    try:
        line = mgba.stdout.readline()
        check("the mGBA window", line.startswith("attach "), line)
        address = line.split()[1]
        code, text = wine.run("doctor", "--attach", address)
        check("doctor finds the script", f"answers at {address}" in text, text)
        server = wine.start("serve", "--quiet", "--listen", "127.0.0.1:0", "--attach", address, "--data", "data")
        line = server.stdout.readline()
        found = re.search(r"listening on (http://[\d.:]+)", line)
        check("serve --attach", found, line)
        http = Http(found[1])
        requests(http, folder)
        url = ("--url", http.url)
        code, text = wine.run("read", "0x02030000", *url)
        check("framewire read", code == 0 and text.split()[-1] == "7", text)
        code, text = wine.run("watch", "u32[0x02000008]", "--count", "3", *url)
        check("framewire watch", code == 0 and len(text.splitlines()) >= 3, text)
        code, text = wine.run("screenshot", "out.png", *url)
        check("framewire screenshot", (folder / "out.png").read_bytes().startswith(b"\x89PNG"), text)
        code, text = wine.run("bench", f"{http.url}/mgbaendpoint", "--rates", "50", "--duration", "3s", "--quiet")
        check("framewire bench", code == 0, text)
        server.send_signal(signal.SIGINT)
        output, _ = server.communicate(timeout=30)
        check("Ctrl+C ends the server", server.returncode in (0, 130), (server.returncode, output))
    finally:
        if server and server.poll() is None:
            server.kill()
        mgba.stdin.close()
        mgba.wait(30)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    for program, package in (("wine", "wine wine64"), ("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64-win32")):
        if not shutil.which(program):
            sys.exit(f"windows-check: {program} is missing; install it (Debian: apt install {package})")
    archive, window = map(Path, sys.argv[1:])
    for file, command in ((archive, "make dist-windows"), (window, "cargo build -p framewire-lab --example window")):
        if not file.is_file():
            sys.exit(f"windows-check: there is no file {file}; build it with `{command}`")
    with tempfile.TemporaryDirectory(prefix="framewire-windows-", ignore_cleanup_errors=True) as work:
        test(archive, window, Path(work))
    return 0


if __name__ == "__main__":
    sys.exit(main())
