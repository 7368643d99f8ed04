"""Who takes part in a cluster and who does not: order of starting, secrets, models, strangers,
drains, several routers, and what a full disk does."""

import os
import random
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from cluster import Asked, Cluster, Program
from server import MODEL_FILE, START_S, free_port, wait_until

NOISE_S = 1.0


def other_model(folder):
    """The same model with one bit of one weight changed: it loads, and is another file."""
    path = Path(folder) / "other.gguf"
    content = bytearray(MODEL_FILE.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    return path


class ClusterJoinTest(unittest.TestCase):
    """One cluster of 1 + 1 for all that leave it as they found it."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__()

    def tearDown(self):
        self.cluster.wait_ready()
        self.cluster.wait_idle()
        self.cluster.assert_alive()

    def assert_serves(self):
        answer = self.cluster.router.complete("The capital of France is", max_tokens=4,
                                              temperature=0)
        self.assertEqual(answer["usage"]["completion_tokens"], 4)

    def test_a_wrong_secret_is_refused_on_both_sides_and_is_not_printed(self):
        wrong = self.cluster.write_secret("wrong")
        stranger = self.cluster.make_worker("troupe-decode", secret=wrong)
        try:
            stranger.says("secret")
            wait_until(lambda: "secret" in self.cluster.router.output(), 10, "the router says why")
            stranger.assert_running()
            for program in (stranger, self.cluster.router):
                self.assertNotIn(wrong.read_text(), program.output())
                self.assertNotIn(self.cluster.secret.read_text(), program.output())
        finally:
            stranger.__exit__()
        self.assert_serves()

    def test_another_model_joins_and_is_asked_for_by_its_name(self):
        router = self.cluster.router
        with tempfile.TemporaryDirectory() as folder:
            worker = self.cluster.make_worker("troupe-decode", "--served-model-name", "other,alias",
                                              model=other_model(folder))
            try:
                def listed():
                    return {model["id"] for model in router.get("/v1/models").json()["data"]}
                wait_until(lambda: "alias" in listed(), START_S, "the router lists the new model")
                self.assertEqual(listed(), {"smol", "other", "alias"})
                before = worker.metric("vllm:prefix_cache_queries_total")
                for name in ("other", "alias"):
                    reply = router.post("/v1/completions", {"model": name, "prompt": "Hello world",
                                                            "max_tokens": 2})
                    self.assertEqual((reply.status, reply.json()["model"]), (200, name))
                self.assertGreater(worker.metric("vllm:prefix_cache_queries_total"), before)
                so_far = worker.metric("vllm:prefix_cache_queries_total")
                self.assert_serves()
                self.assertEqual(worker.metric("vllm:prefix_cache_queries_total"), so_far)
                self.assertEqual(router.metric("vllm:request_success_total", model_name="other",
                                               finished_reason="length"), 2)
                shown = router.get("/cluster").json()["workers"]
                self.assertEqual({worker["model"] for worker in shown}, {MODEL_FILE.stem, "other"})
                self.assertEqual(len({worker["model_digest"] for worker in shown}), 2)
                unknown = router.post("/v1/completions", {"model": "nobody", "prompt": "x"})
                self.assertEqual(unknown.status, 404)
                self.assertEqual(unknown.json()["error"]["code"], "model_not_found")
                for name in ("smol", "other", "alias"):
                    self.assertIn(name, unknown.json()["error"]["message"])
            finally:
                worker.__exit__()
            # Its model is known, but nobody can serve it; the other one goes on.
            wait_until(lambda: listed() == {"smol"}, 10, "the lost model is no longer listed")
            lost = router.post("/v1/completions", {"model": "other", "prompt": "x"})
            self.assertEqual(lost.status, 503)
            self.assertGreater(int(lost.headers["Retry-After"]), 0)
            self.assertEqual(router.get("/v1/models/other").status, 503)
        self.assert_serves()

    def test_of_two_models_under_one_name_the_first_keeps_it_and_the_other_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            path = other_model(folder).rename(Path(folder) / "third.gguf")
            content = bytearray(path.read_bytes())
            content[-6] ^= 1
            path.write_bytes(content)
            worker = self.cluster.make_worker("troupe-decode", "--served-model-name", "smol",
                                              model=path)
            try:
                worker.says('there is a model named "smol" already')
                self.cluster.router.says('there is a model named "smol" already')
                so_far = worker.metric("vllm:prefix_cache_queries_total")
                self.assert_serves()
                self.assertEqual(worker.metric("vllm:prefix_cache_queries_total"), so_far)
            finally:
                worker.__exit__()

    def test_bytes_of_strangers_end_nothing(self):
        noise = random.Random(5)
        ports = [self.cluster.nodes[0]] + [int(worker.command[worker.command.index("--port") + 1])
                                           for worker in self.cluster.workers]
        probes = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
                  b"SSH-2.0-probe\r\n", b"\x00" * 64, b"\xff" * 4096, b"\n", b"",
                  *(noise.randbytes(noise.choice([1, 5, 100, 70000])) for _ in range(20))]
        began = time.monotonic()
        for port in ports:
            for probe in probes:
                try:
                    with socket.create_connection(("127.0.0.1", port), timeout=5) as line:
                        line.sendall(probe)
                        if time.monotonic() - began < NOISE_S:
                            line.settimeout(0.05)
                            line.recv(100)
                except OSError:
                    pass  # closed on us, as it should be
        self.cluster.assert_alive()
        self.assert_serves()

    def test_a_drain_under_load_ends_nothing_early(self):
        drained = self.cluster.make_worker("troupe-decode")
        self.cluster.decode.append(drained)
        self.cluster.wait_ready()
        asked = [Asked(self.cluster.router, {"prompt": f"Story {i}: once", "max_tokens": 60,
                                             "temperature": 0, "ignore_eos": True})
                 for i in range(8)]
        wait_until(lambda: drained.metric("vllm:num_requests_running") > 0, 10, "it works")
        drained.send_signal(signal.SIGTERM)
        self.assertEqual(drained.wait(30), 0, drained.output()[-2000:])
        self.cluster.decode.remove(drained)
        for request in asked:
            request.wait(60)
            self.assertIsNone(request.error)
            self.assertEqual(request.answer["usage"]["completion_tokens"], 60)
        drained.__exit__()

    def test_full_disks_for_logs_end_nothing(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            worker = self.cluster.make_worker("troupe-decode")
            worker.kill()
            worker.start(output=full)
            self.cluster.decode.append(worker)
            try:
                self.cluster.wait_ready()
                asked = [Asked(self.cluster.router, {"prompt": "x", "max_tokens": 8}).wait(30)
                         for _ in range(4)]
                self.assertEqual([request.error for request in asked], [None] * 4)
                worker.assert_running()
                worker.send_signal(signal.SIGTERM)
                self.assertEqual(worker.wait(), 0)
            finally:
                self.cluster.decode.remove(worker)
                worker.__exit__()


def hex_words(line):
    return [word.strip("'\",;:().") for word in line.split()
            if len(word.strip("'\",;:().")) == 32]


class ClusterStartTest(unittest.TestCase):
    def test_workers_may_start_before_their_router(self):
        with tempfile.TemporaryDirectory() as folder:
            secret = Path(folder) / "secret"
            secret.touch(mode=0o600)
            secret.write_text("a secret that is long enough")
            node, http = free_port(), free_port()
            metrics = free_port()
            flags = ["--model", MODEL_FILE, "--join", f"127.0.0.1:{node}", "--threads", 1,
                     "--role", "mixed", "--kv-memory-mib", 128, "--metrics-port", metrics]
            worker = Program("troupe-decode", *flags, secret=secret, port=metrics)
            router = None
            try:
                worker.says("waiting for the router")
                self.assertEqual(worker.get("/health").status, 503)
                time.sleep(1)
                self.assertLess(len(worker.output().splitlines()), 12, "it waits quietly")
                router = Program("troupe-router", "--port", node, "--http-port", http,
                                 "--served-model-name", "smol", secret=secret, port=http)
                router.says("\nready: ")
                worker.says("\nready: ")
                router.complete("Hello", max_tokens=2)
                self.assertEqual(worker.get("/health").status, 200)
                self.assertIn("model_name=\"smol\"", router.get("/metrics").body.decode())
            finally:
                worker.__exit__()
                if router:
                    router.__exit__()

    def test_a_router_without_workers_says_why_it_does_not_serve(self):
        cluster = Cluster(prefill=1, decode=0)
        try:
            cluster.router.says("not ready: ")
            reply = cluster.router.get("/health")
            self.assertEqual(reply.status, 503)
            wait_until(lambda: b"no worker that decodes" in cluster.router.get("/health").body, 20,
                       "the reason is named")
            refused = cluster.router.post("/v1/completions", {"model": "smol", "prompt": "x"})
            self.assertEqual(refused.status, 503)
        finally:
            cluster.__exit__()

    def test_two_routers_front_the_same_workers(self):
        with Cluster(routers=2) as cluster:
            prompt = "The lighthouse keeper climbed the stairs. " * 12
            bodies = [{"prompt": f"{i} {prompt}", "max_tokens": 12, "temperature": 0,
                       "logprobs": 2} for i in range(6)]
            asked = [Asked(router, body) for body in bodies for router in cluster.routers]
            for one, two in zip(asked[::2], asked[1::2]):
                one.wait(60), two.wait(60)
                self.assertEqual((one.error, two.error), (None, None))
                self.assertEqual(one.answer["choices"], two.answer["choices"])
            cluster.wait_idle()
            # Without one of them the other goes on.
            cluster.routers[0].kill()
            cluster.routers[1].complete("Hello", max_tokens=2)
            cluster.wait_idle()


class SupervisorTest(unittest.TestCase):
    """`troupe serve --cluster`: a child that dies comes back, and none outlives its parent."""

    def start(self, log):
        from server import TROUPE
        return subprocess.Popen(
            [TROUPE, "serve", MODEL_FILE, "--cluster", "--port", "0", "--prefill-workers", "1",
             "--decode-workers", "1", "--kv-memory-mib", "128"],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def children(self, parent):
        found = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
                if int(fields[1]) == parent:
                    name = Path(stat.parent / "cmdline").read_bytes().split(b"\0")[0]
                    found[int(stat.parent.name)] = os.path.basename(name.decode())
            except OSError:
                pass
        return found

    def test_children_come_back_and_none_is_left_behind(self):
        with tempfile.NamedTemporaryFile(mode="w+") as log:
            parent = self.start(log)
            text = lambda: Path(log.name).read_text(errors="replace")
            try:
                wait_until(lambda: "\nready: " in text(), START_S, "the cluster is ready")
                children = self.children(parent.pid)
                self.assertEqual(sorted(children.values()),
                                 ["troupe-decode", "troupe-monitor", "troupe-prefill",
                                  "troupe-router"])
                decode = next(pid for pid, name in children.items() if name == "troupe-decode")
                os.kill(decode, signal.SIGKILL)
                wait_until(lambda: text().count("[decode-1] ready: ") == 2, START_S,
                           "the killed worker is back")
                self.assertIn("decode-1 (process", text())
                self.assertIn("was killed by signal 9; it is started again in", text())
                children = self.children(parent.pid)
                parent.kill()
                parent.wait()
                gone = lambda: not any(Path(f"/proc/{pid}").exists() for pid in children)
                wait_until(gone, 5, "no child outlives its parent")
            finally:
                parent.kill()
                parent.wait()

    def test_a_signal_ends_all_in_order(self):
        with tempfile.NamedTemporaryFile(mode="w+") as log:
            parent = self.start(log)
            text = lambda: Path(log.name).read_text(errors="replace")
            try:
                wait_until(lambda: "\nready: " in text(), START_S, "the cluster is ready")
                children = self.children(parent.pid)
                parent.send_signal(signal.SIGTERM)
                self.assertEqual(parent.wait(20), 0, text()[-2000:])
                self.assertNotIn("is ended at once", text())
                self.assertFalse(any(Path(f"/proc/{pid}").exists() for pid in children))
            finally:
                parent.kill()
                parent.wait()


if __name__ == "__main__":
    unittest.main()
