#!/usr/bin/env python3
"""Compares the figures of four load testers (Framewire's, vegeta, oha and wrk) with the times that the server records.

    benches/testers.py [--only http|https] [--framewire PATH] [--rate 200] [--seconds 10] [--json FILE]

Each request is a POST with a body. There are three kinds of runs: the server answers after 20 ms; it answers at once,
but stalls once for two seconds; or it answers after 20 ms, but fails 1% of the requests. The table has the figures of
each tester, and how far they are from the server's. In a run with a stall, the server's latencies are computed from the
intended send times: request i is due at i / rate.

wrk cannot send at a fixed rate. Here it opens as many connections as it needs to reach the rate if replies take 20 ms,
and it has no run with a stall. Testers that are not in PATH are skipped. For HTTPS, openssl makes a certificate. --json
FILE writes the runs to FILE. If --only leaves out HTTP or HTTPS, the earlier runs with it stay in FILE. The exit code
is 1 if Framewire's counts differ from the server's, or if a percentile of 1 ms or more differs by more than 2%.
"""

import argparse
import asyncio
import json
import math
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

PERCENTILES = (50, 90, 99)
DELAY = 0.02  # seconds
STALL = 2.0  # seconds
ALLOWED = 0.02  # the largest relative difference between percentiles


class Server:
    """Answers requests, and records when each request arrived and when it was answered."""

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
        """Percentiles of the latencies, in ms. In a run with a stall, a latency begins when the request was due."""
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
    correct = sorted(reply["latency"] / 1e6 for reply in replies if reply["code"] == 200)
    figures = {share: correct[math.ceil(share / 100 * len(correct)) - 1] for share in PERCENTILES}
    return len(correct), len(replies) - len(correct), figures


def oha(program: str, url: str, rate: float, seconds: float, kind: str) -> tuple[int, int, dict[int, float]]:
    command = [program, "--no-tui", "--output-format", "json", "--insecure", "-m", "POST", "-d", "hello", "-c", "1024"]
    options = ["-q", f"{rate:g}", "-n", f"{rate * seconds:.0f}", *(["--latency-correction"] if kind == "stall" else [])]
    report = json.loads(subprocess.run([*command, *options, url], check=True, capture_output=True).stdout)
    codes = report["statusCodeDistribution"]
    failed = sum(count for code, count in codes.items() if code != "200")
    return codes.get("200", 0), failed, {share: 1000 * report["latencyPercentiles"][f"p{share}"] for share in PERCENTILES}


def wrk(program: str, url: str, rate: float, seconds: float, kind: str) -> tuple[int, int, dict[int, float]] | None:
    if kind == "stall":
        return None
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, "post.lua")
        script.write_text('wrk.method, wrk.body = "POST", "hello"\n')
        command = [program, "-t1", f"-c{rate * DELAY:.0f}", f"-d{seconds:.0f}s", "--latency", "-s", str(script), url]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    units = {"us": 0.001, "ms": 1.0, "s": 1000.0}
    found = re.findall(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s)$", text, re.MULTILINE)
    shares = {int(share): float(value) * units[unit] for share, value, unit in found}
    wrong = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    failed = int(wrong.group(1)) if wrong else 0
    total = int(re.search(r"(\d+) requests in", text).group(1))
    return total - failed, failed, {share: shares[share] for share in PERCENTILES}


def difference(measured: float, of_server: float) -> str:
    # In a run with a stall, replies outside of the stall take less than a millisecond. The tester and the server begin
    # and end their measurements at slightly different moments, so a percentage would say little.
    return f"{100 * (measured / of_server - 1):+.1f}%" if of_server > 1 else f"server: {of_server:.2f}"


def is_near(run: dict) -> bool:
    """Whether a run has the server's counts, and nearly its percentiles. Percentiles below 1 ms are not compared."""
    counts = run["correct"] == run["server_correct"] and run["failed"] == run["server_failed"]
    pairs = [(value, run["server"][share]) for share, value in run["measured"].items()]
    return counts and all(abs(value / of_server - 1) <= ALLOWED for value, of_server in pairs if of_server > 1)


def certificate() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        key, cert = f"{folder}/key.pem", f"{folder}/cert.pem"
        new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
        subprocess.run([*new, "-keyout", key, "-out", cert], check=True, capture_output=True)
        context.load_cert_chain(cert, key)
    return context


TESTERS = {"framewire": framewire, "vegeta": vegeta, "oha": oha, "wrk": wrk}


def measure(options: argparse.Namespace, scheme: str, kind: str, name: str) -> dict | None:
    program = options.framewire if name == "framewire" else shutil.which(name)
    if program is None:
        return None
    server = Server(kind, options.rate, options.seconds, certificate() if scheme == "https" else None)
    url = f"{scheme}://127.0.0.1:{server.port}/"
    result = TESTERS[name](program, url, options.rate, options.seconds, kind)
    if result is None:
        return None
    correct, failed, figures = result
    return {
        "run": kind,
        "tester": name,
        "correct": correct,
        "server_correct": len(server.times),
        "failed": failed,
        "server_failed": server.failed,
        "measured": {f"p{share}": round(value, 3) for share, value in figures.items()},
        "server": {f"p{share}": round(value, 3) for share, value in server.figures().items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--framewire", default="target/release/framewire")
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--only", choices=["http", "https"])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    heads = ["scheme", "run", "tester", "correct", "failed", *(f"p{share}, ms (difference)" for share in PERCENTILES)]
    print("| " + " | ".join(heads) + " |\n" + "| --- " * 3 + "| ---: " * 5 + "|")
    runs: dict[str, list[dict]] = {}
    for scheme in [options.only] if options.only else ["http", "https"]:
        runs[scheme] = []
        for kind in ("20 ms", "stall", "faults"):
            for name in TESTERS:
                run = measure(options, scheme, kind, name)
                if run is None:
                    continue
                runs[scheme].append(run)
                counts = [f"{run['correct']} of {run['server_correct']}", f"{run['failed']} of {run['server_failed']}"]
                cells = [f"{value:.2f} ({difference(value, run['server'][share])})" for share, value in run["measured"].items()]
                print("| " + " | ".join([scheme, kind, name, *counts, *cells]) + " |", flush=True)
    if options.json:
        kept = json.loads(options.json.read_text()) if options.json.exists() else {}
        options.json.write_text(json.dumps(kept | runs, indent=2) + "\n")
    if not all(is_near(run) for of_scheme in runs.values() for run in of_scheme if run["tester"] == "framewire"):
        sys.exit("Framewire's counts or percentiles differ from the server's")


if __name__ == "__main__":
    main()
