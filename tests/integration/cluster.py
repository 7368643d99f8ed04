"""Starts a cluster of real processes on this machine for a test, and talks to it."""

import os
import secrets
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

from server import BUILD, MODEL, MODEL_FILE, START_S, Server, free_port, wait_until

END_S = 20


class Program(Server):
    """One program of a cluster, with an HTTP port that has /metrics and /health. It can be started
    again with the same flags, and so at the same ports."""

    def __init__(self, program, *flags, secret, port, host="127.0.0.1", prefix=()):
        self.name, self.port = program, port
        self.command = [*prefix, BUILD / "bin" / program, "--host", host, "--secret-file", secret,
                        *map(str, flags)]
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith("TROUPE_")}
        # A test machine may leave a process without a processor for longer than half a second.
        # That this is what a node's death takes to be noticed, the transport's own tests show.
        self.environment["TROUPE_PEER_TIMEOUT_MS"] = "1500"
        self.log = tempfile.NamedTemporaryFile(mode="a+", prefix=f"{program}-", suffix=".log")
        self.process = None
        self.start()

    def start(self, output=None):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL,
                                        stdout=output or self.log, stderr=output or self.log,
                                        env=self.environment)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self):
        self.kill()
        self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait()
        self.log.close()

    def says(self, text, seconds=START_S):
        wait_until(lambda: text in self.output(), seconds, f"{self.name} says {text!r}")

    def assert_running(self):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n"
                                 f"{self.output()[-4000:]}")

    def no_block_is_lost(self):
        values = self.metrics()

        def total(name):
            return sum(values[name].values())
        return self.idle() and total("troupe_kv_blocks_leased") == 0


class Cluster:
    """Routers and workers; use as a context manager. `routers` front the same workers."""

    def __init__(self, prefill=1, decode=1, routers=1, role=None, threads=1, router_flags=(),
                 worker_flags=(), model=MODEL_FILE, host="127.0.0.1"):
        self.folder = tempfile.TemporaryDirectory(prefix="troupe-cluster-")
        self.secret = self.write_secret("secret")
        self.threads, self.worker_flags, self.model = threads, worker_flags, model
        self.host = host
        self.nodes = [free_port() for _ in range(routers)]
        self.routers, self.prefill, self.decode, self.others = [], [], [], []
        try:
            self.routers = [self.make_router(node, *router_flags) for node in self.nodes]
            self.prefill = [self.make_worker("troupe-prefill") for _ in range(prefill)]
            flags = ("--role", role) if role else ()
            self.decode = [self.make_worker("troupe-decode", *flags) for _ in range(decode)]
        except BaseException:
            self.__exit__()
            raise

    def write_secret(self, name):
        path = Path(self.folder.name) / name
        path.touch(mode=0o600)
        path.write_text(secrets.token_hex(32))
        return path

    def make_router(self, node_port, *flags):
        http = free_port()
        return Program("troupe-router", "--port", node_port, "--http-port", http,
                       "--served-model-name", MODEL, *flags, secret=self.secret, port=http,
                       host=self.host)

    def make_worker(self, program, *flags, model=None, secret=None, host=None, **options):
        metrics = free_port()
        return Program(program, "--model", model or self.model, "--join",
                       ",".join(f"{self.host}:{port}" for port in self.nodes), "--threads",
                       self.threads, "--port", free_port(), "--metrics-port", metrics,
                       "--kv-memory-mib", 256, *self.worker_flags, *flags,
                       secret=secret or self.secret, port=metrics, host=host or self.host,
                       **options)

    def add(self, worker):
        """A program that ends with the cluster."""
        self.others.append(worker)
        return worker

    @property
    def router(self):
        return self.routers[0]

    @property
    def workers(self):
        return self.prefill + self.decode

    @property
    def programs(self):
        return self.routers + self.workers + self.others

    def __enter__(self):
        try:
            return self.wait_ready()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for program in self.programs:
            program.__exit__()
        self.folder.cleanup()

    def wait_ready(self, seconds=START_S):
        for router in self.routers:
            wait_until(lambda r=router: self.serves(r), seconds, "the router is ready")
            wait_until(lambda r=router: self.all_accepted(r), seconds, "every worker is known")
        return self

    def serves(self, router):
        router.assert_running()
        try:
            return router.get("/health", timeout=5).status == 200
        except OSError:
            return False

    def all_accepted(self, router):
        seen = [w for w in router.get("/cluster").json()["workers"] if w["accepting"]]
        return len(seen) >= len(self.workers)

    def wait_idle(self, seconds=10):
        for worker in self.workers:
            wait_until(worker.no_block_is_lost, seconds,
                       f"every block of {worker.name} is free or cached")

    def assert_alive(self):
        for program in self.programs:
            program.assert_running()


class Asked:
    """A request in a thread of its own, with how it ended: `answer`, or `error` in words."""

    def __init__(self, router, body, path="/v1/completions", timeout=60):
        self.answer, self.error = None, None
        self.thread = threading.Thread(target=self.run, args=(router, body, path, timeout))
        self.thread.start()

    def run(self, router, body, path, timeout):
        try:
            reply = router.request("POST", path, {"model": MODEL} | body, timeout=timeout)
            if reply.status == 200:
                self.answer = reply.json()
            else:
                self.error = f"{reply.status}: {reply.json()['error']['message']}"
        except Exception as error:  # whatever it is, it is how the request ended
            self.error = f"{type(error).__name__}: {error}"

    def wait(self, seconds):
        self.thread.join(seconds)
        if self.thread.is_alive():
            raise AssertionError(f"a request has not ended within {seconds} s")
        return self
