#!/usr/bin/env python3
"""Framewire's load tester and vegeta next to a server that records its own times.

    benches/testers.py [--tls] [--framewire PATH] [--vegeta PATH] [--rate 200] [--seconds 10]

The server is sent a POST with a body. It answers after 20 ms; in other runs it stands still for a second once, or fails 1%
of the requests. For each run, the table has the server's own figures and, for each tester, how far it is from them. With a
stall, the figure is the arithmetic from the intended send times: request i is due at i / rate. Without vegeta in PATH, only
Framewire is measured. With --tls, the server has a certificate that openssl makes.
"""

import argparse
import asyncio
import json
import math
import shutil
import ssl
import subprocess
import tempfile
import threading
import time
from pathlib import Path

PERCENTILES = (50, 90, 99)
DELAY = 0.02
STALL = 1.0


class Server:
    """Answers requests and records when they came and when they were answered."""

    def __init__(self, kind: str, rate: float, seconds: float, tls: ssl.SSLContext | None):
        self.kind, self.rate, self.stall_at, self.tls = kind, rate, seconds / 2, tls
        self.times: list[tuple[float, float]] = []
        self.failed = 0
        self.ready = threading.Event()
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.run, daemon=True).start()
        self.ready.wait()

    def run(self) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=4096, ssl=self.tls))
        self.port = server.sockets[0].getsockname()[1]
        self.ready.set()
        self.loop.run_forever()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"content-length:")), 0)
                await reader.readexactly(length)
                await self.answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def answer(self, writer: asyncio.StreamWriter) -> None:
        came = time.perf_counter()
        number = len(self.times) + self.failed
        if self.kind == "faults" and number % 100 == 50:
            self.failed += 1
            writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")
            return
        if self.kind == "stall":
            begun = (self.times[0][0] if self.times else came) + self.stall_at
            wait = begun + STALL - came if begun <= came < begun + STALL else 0.0
        else:
            wait = DELAY
        index = len(self.times)
        self.times.append((came, came))
        if wait > 0:
            await asyncio.sleep(wait)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        self.times[index] = (came, time.perf_counter())

    def figures(self) -> dict[int, float]:
        """Milliseconds; with a stall, from the time at which each request was due."""
        times = sorted(self.times)
        first = times[0][0]
        if self.kind == "stall":
            latencies = [1000 * (done - first - index / self.rate) for index, (_, done) in enumerate(times)]
        else:
            latencies = [1000 * (done - came) for came, done in times]
        latencies.sort()
        return {share: latencies[math.ceil(share / 100 * len(latencies)) - 1] for share in PERCENTILES}


def framewire(program: str, url: str, rate: float, seconds: float, kind: str) -> tuple[int, int, dict[int, float]]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        command = [program, "bench", url, "--insecure", "--body", "hello", "--rates", f"{rate:g}", "--duration", f"{seconds:g}s"]
        options = ["--connections", "4096", "--emulator", "none", "--skip-check", "--quiet", "--json", str(report)]
        subprocess.run(command + options, check=True, stdout=subprocess.DEVNULL)
        row = json.loads(report.read_text())["rows"][0]
    clock = row["intended" if kind == "stall" else "sent"]
    return row["correct"], row["failures"].get("status", 0), {share: clock[f"p{share}"] for share in PERCENTILES}


def vegeta(program: str, url: str, rate: float, seconds: float, kind: str) -> tuple[int, int, dict[int, float]]:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "body").write_text("hello")
        targets = f"POST {url}\n@{folder}/body\n"
        command = [program, "attack", f"-rate={rate:g}/1s", f"-duration={seconds:g}s", "-connections=4096", "-max-workers=4096", "-insecure"]
        attack = subprocess.run(command, input=targets.encode(), capture_output=True, check=True).stdout
    encoded = subprocess.run([program, "encode"], input=attack, capture_output=True, check=True).stdout
    replies = [json.loads(line) for line in encoded.splitlines()]
    right = sorted(reply["latency"] / 1e6 for reply in replies if reply["code"] == 200)
    figures = {share: right[math.ceil(share / 100 * len(right)) - 1] for share in PERCENTILES}
    return len(right), len(replies) - len(right), figures


def off(measured: float, own: float) -> str:
    # Next to a stall, replies at once are a fraction of a millisecond: as much as the way between the two clocks.
    return f"{100 * (measured / own - 1):+.1f}%" if own > 1 else f"server: {own:.2f}"


def certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        key, cert = f"{folder}/key.pem", f"{folder}/cert.pem"
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
        subprocess.run([*new, "-keyout", key, "-out", cert], check=True, capture_output=True)
        context.load_cert_chain(cert, key)
    return context


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framewire", default="target/release/framewire")
    parser.add_argument("--vegeta", default=shutil.which("vegeta"))
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    tls = certificate() if options.tls else None
    testers = [("framewire", framewire, options.framewire), ("vegeta", vegeta, options.vegeta)]
    heads = ["run", "tester", "correct", "failed", *(f"p{share}, ms (off)" for share in PERCENTILES)]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * 2 + "| ---: " * 5 + "|")
    for kind in ("20 ms", "stall", "faults"):
        for name, measure, program in testers:
            if program is None:
                continue
            server = Server(kind, options.rate, options.seconds, tls)
            url = f"{'https' if tls else 'http'}://127.0.0.1:{server.port}/"
            correct, failed, figures = measure(program, url, options.rate, options.seconds, kind)
            own = server.figures()
            counted = [f"{correct} of {len(server.times)}", f"{failed} of {server.failed}"]
            cells = [f"{figures[share]:.2f} ({off(figures[share], own[share])})" for share in PERCENTILES]
            print("| " + " | ".join([kind, name, *counted, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
