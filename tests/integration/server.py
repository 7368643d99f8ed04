"""Starts the real server for a test, and talks to it: by the openai package, or byte by byte."""

import atexit
import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
# Taken out: the programs refuse variables that look like settings and are none.
BUILD = Path(os.environ.pop("TROUPE_BUILD", ROOT / "build"))
TROUPE = BUILD / "bin" / "troupe"
MODEL_FILE = ROOT / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "smol"
START_S = 60
STOP_S = 30


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds, what):
    """Polls until the condition holds; there is no event to wait for across processes."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body.decode("utf-8"))


class Server:
    """One `troupe serve` process on a free port of its own. Use as a context manager."""

    def __init__(self, *flags, model=MODEL_FILE, models=None, names=(MODEL,), port=None,
                 environment=None):
        self.port = port or free_port()
        self.headers = {}  # of every request, such as a key
        named = [part for name in names for part in ("--served-model-name", name)]
        self.log = tempfile.NamedTemporaryFile(mode="w+", prefix="troupe-", suffix=".log")
        self.process = subprocess.Popen(
            [TROUPE, "serve", *(models or [model]), "--port", str(self.port), *named,
             *map(str, flags)], stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env=None if environment is None else os.environ | environment)

    def __enter__(self):
        try:
            return self.wait_ready()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def wait_ready(self):
        def ready():
            try:
                return self.get("/health").status == 200
            except OSError:
                return False
        wait_until(ready, START_S, "the server is ready")
        return self

    def output(self):
        return Path(self.log.name).read_text(encoding="utf-8", errors="replace")

    def send_signal(self, number):
        self.process.send_signal(number)

    def wait(self, seconds=STOP_S):
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the server did not end within {seconds} s:\n"
                                 f"{self.output()[-4000:]}") from error

    def stop(self):
        self.send_signal(signal.SIGTERM)
        return self.wait()

    def resident_bytes(self):
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("the server is gone")

    # HTTP, one connection a request.

    def request(self, method, path, body=None, headers=None, timeout=60):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            connection.request(method, path, body,
                               {"Content-Type": "application/json"}
                               | getattr(self, "headers", {}) | (headers or {}))
            response = connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        except (ConnectionError, http.client.HTTPException) as error:
            self.assert_alive(error)
            raise
        finally:
            connection.close()

    def assert_alive(self, cause=None):
        """A test that finds the server gone fails with its last words."""
        time.sleep(0.05)  # a process that just cut its connections may not have ended yet
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n"
                                 f"{self.output()[-4000:]}") from cause

    def get(self, path, **options):
        return self.request("GET", path, **options)

    def post(self, path, body, **options):
        return self.request("POST", path, body, **options)

    def complete(self, prompt, timeout=60, **fields):
        """A completion that must succeed; returns the answer's JSON."""
        reply = self.post("/v1/completions", {"model": MODEL, "prompt": prompt} | fields,
                          timeout=timeout)
        if reply.status != 200:
            raise AssertionError(f"{reply.status}: {reply.body[:500]}")
        return reply.json()

    def stream(self, path, body, timeout=120):
        """The events of a stream, without the closing [DONE]; each already parsed."""
        reply = self.post(path, {"model": MODEL, "stream": True} | body, timeout=timeout)
        if reply.status != 200:
            raise AssertionError(f"{reply.status}: {reply.body[:500]}")
        return parse_events(reply.body)

    def open_stream(self, body, path="/v1/chat/completions", headers=""):
        """Sends a streaming request on a plain socket; the caller reads, or leaves."""
        content = json.dumps({"model": MODEL, "stream": True} | body).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}"
                           f"Content-Type: application/json\r\n"
                           f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
        return connection

    # Metrics.

    def metrics(self):
        """{name: {frozenset of labels: value}}, read by a strict parser."""
        text = self.get("/metrics").body.decode("utf-8")
        values = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                values.setdefault(sample.name, {})[frozenset(sample.labels.items())] = sample.value
        return values

    def metric(self, name, **labels):
        """The sum over the samples that carry these labels."""
        wanted = set(labels.items())
        samples = self.metrics()[name]
        return sum(value for found, value in samples.items() if wanted <= found)

    def idle(self):
        """Whether nothing runs, nothing waits, and no sequence holds a block."""
        values = self.metrics()

        def total(name):
            return sum(values[name].values())
        return (total("vllm:num_requests_running") == 0 and total("vllm:num_requests_waiting") == 0
                and total("troupe_kv_blocks_held") == 0 and total("vllm:kv_cache_usage_perc") == 0
                and total("troupe_kv_blocks_free") + total("troupe_kv_blocks_cached")
                == total("troupe_kv_blocks_total") > 0)

    def wait_idle(self, seconds=2.0):
        wait_until(self.idle, seconds, "every block is free or cached and every gauge at rest")


def parse_events(body):
    """The events of an SSE body; checks its shape."""
    text = body.decode("utf-8")
    events = [line[len("data: "):] for line in text.splitlines() if line.startswith("data: ")]
    if not events or events[-1] != "[DONE]":
        raise AssertionError(f"the stream does not end with [DONE]: …{text[-300:]!r}")
    return [json.loads(event) for event in events[:-1]]


class Witness:
    """A long stream beside an attack: it must come out as if nothing had happened. Afterwards its
    text is compared with what the same server says when it has nothing else to do, from a cold
    cache. Use as a context manager."""

    TOKENS_MAX = 4000

    def __init__(self, server):
        self.server = server
        self.salt = secrets.token_hex(4)
        self.line = None

    def body(self, max_tokens, salt):
        return {"prompt": "The old lighthouse keeper wrote in his diary:", "temperature": 0,
                "max_tokens": max_tokens, "ignore_eos": True, "cache_salt": self.salt + salt}

    def __enter__(self):
        self.line = self.server.open_stream(self.body(self.TOKENS_MAX, "beside") | {
            "stream_options": {"include_usage": True, "continuous_usage_stats": True}},
            path="/v1/completions")
        self.received = self.line.recv(65536)
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.compare()
        finally:
            self.line.close()

    def compare(self):
        """Takes what has come, and at least one event."""
        self.line.settimeout(0.1)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                piece = self.line.recv(1 << 20)
                assert piece, f"the stream was cut: …{self.received[-500:]!r}"
                self.received += piece
            except TimeoutError:
                pass
            if b"completion_tokens" in self.received and len(self.received) > 8192:
                break
        self.line.close()
        whole = self.received[:self.received.rfind(b"\n\n")].decode("utf-8")
        events = [json.loads(line[6:]) for line in whole.splitlines() if line.startswith("data: {")]
        assert all("choices" in event for event in events), whole[-2000:]
        said = "".join(event["choices"][0]["text"] for event in events)
        tokens = events[-1]["usage"]["completion_tokens"]
        alone = self.server.complete(**self.body(tokens, "alone"))["choices"][0]["text"]
        # The last character may still have been on its way.
        assert said and alone.startswith(said) and len(alone) - len(said) < 16, (said, alone)


_shared = None


def shared_server():
    """One server with default flags for all tests that leave it as they found it. To be asked for
    by each test: after a crash the next one gets a new server."""
    global _shared
    if _shared is None or _shared.process.poll() is not None:
        _shared = Server().__enter__()
        atexit.register(_shared.__exit__)
    return _shared


def openai_client(server, **options):
    import openai  # takes a second, and not every test needs it
    return openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none",
                         timeout=60, max_retries=0, **options)


def chat(content, **fields):
    return {"messages": [{"role": "user", "content": content}]} | fields
