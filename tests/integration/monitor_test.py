"""The monitor and `troupe top`, beside a cluster whose programs come and go."""

import os
import pty
import signal
import subprocess
import time
import unittest

from cluster import Cluster, Program
from server import TROUPE, free_port, shared_server, wait_until

NOTICE_S = 5  # a dead node is noticed at once by its connection, a silent one within three seconds


def top(port, *flags):
    return subprocess.run([TROUPE, "top", f"http://127.0.0.1:{port}", *flags], capture_output=True,
                          text=True, timeout=30, check=False)


def make_monitor(cluster, **options):
    port = free_port()
    return cluster.add(Program(
        "troupe-monitor", "--join", ",".join(f"127.0.0.1:{node}" for node in cluster.nodes),
        "--http-port", port, port=port, **({"secret": cluster.secret} | options)))


def healthy(monitor):
    try:
        return monitor.get("/health").status == 200
    except OSError:
        return False


def state_of(monitor, endpoint_of):
    for worker in monitor.get("/cluster").json()["observed"]:
        if worker["endpoint"] == endpoint_of:
            return worker["state"]
    return None


class MonitorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(prefill=1, decode=1)
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.wait_ready()
        cls.monitor = make_monitor(cls.cluster)
        wait_until(lambda: healthy(cls.monitor), 20, "the monitor knows a healthy cluster")
        cls.endpoints = {worker["role"]: worker["endpoint"]
                         for worker in cls.cluster.router.get("/cluster").json()["workers"]}

    def wait_state(self, role, state):
        wait_until(lambda: state_of(self.monitor, self.endpoints[role]) == state, NOTICE_S,
                   f"the monitor sees the {role} worker {state}")

    def up(self, role):
        values = self.monitor.metrics().get("troupe_worker_up", {})
        return {value for labels, value in values.items() if role in str(labels)}

    def test_router_and_monitor_show_the_same_workers(self):
        seen = [{worker["endpoint"]: (worker["role"], worker["incarnation"])
                 for worker in program.get("/cluster").json()["workers"]}
                for program in (self.cluster.router, self.monitor)]
        self.assertEqual(len(seen[0]), 2)
        self.assertEqual(seen[0], seen[1])
        peers = self.cluster.router.get("/cluster").json()["peers"]
        self.assertTrue(any(peer["round_trip_seconds"] for peer in peers), peers)

    def test_top_draws_both_once_where_there_is_no_terminal(self):
        for program in (self.cluster.router, self.monitor):
            run = top(program.port)
            self.assertEqual(run.returncode, 0, run.stderr)
            for word in (*self.endpoints.values(), "prefill", "decode", "ready", "total"):
                self.assertIn(word, run.stdout)
            self.assertNotIn("\x1b", run.stdout)
        self.assertIn("LATEST TRANSITIONS", run.stdout)

    def test_top_draws_again_in_a_terminal_until_a_signal(self):
        own, theirs = pty.openpty()
        process = subprocess.Popen([TROUPE, "top", f"http://127.0.0.1:{self.monitor.port}"],
                                   stdout=theirs, stdin=theirs, stderr=theirs)
        try:
            os.close(theirs)
            seen = b""
            deadline = time.monotonic() + 20
            while seen.count(b"WORKER ") < 2 and time.monotonic() < deadline:
                seen += os.read(own, 65536)
            self.assertGreaterEqual(seen.count(b"WORKER "), 2)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(10), 0)
            while not seen.endswith(b"\x1b[?1049l"):  # the terminal is as it was
                seen += os.read(own, 65536)
        finally:
            process.kill()
            process.wait()
            os.close(own)

    def test_top_says_what_is_wrong_with_an_address(self):
        for address, words in (("http://127.0.0.1:1", "cannot reach"), ("ftp://x", "http://"),
                               ("http://", "http://")):
            run = subprocess.run([TROUPE, "top", address, "--once"], capture_output=True, text=True,
                                 timeout=30, check=False)
            self.assertEqual(run.returncode, 1)
            self.assertIn(words, run.stderr)
        worker = self.cluster.decode[0]  # has a port without /cluster
        run = top(worker.port)
        self.assertEqual(run.returncode, 1)
        self.assertIn("neither a router nor a monitor", run.stderr)

    def test_a_killed_worker_is_lost_and_returns(self):
        self.cluster.decode[0].kill()
        self.wait_state("decode", "lost")
        self.assertEqual(self.up("decode"), {0})
        health = self.monitor.get("/health")
        self.assertEqual(health.status, 503)
        self.assertIn(self.endpoints["decode"], health.body.decode())
        self.assertIn("lost", top(self.monitor.port).stdout)
        self.cluster.decode[0].start()
        wait_until(lambda: healthy(self.monitor), 20, "the cluster is healthy again")
        self.wait_state("decode", "ready")
        self.assertEqual(self.up("decode"), {1})
        log = self.monitor.output()
        self.assertIn(f"worker {self.endpoints['decode']} lost: ", log)
        self.assertIn(f"worker {self.endpoints['decode']} returned", log)

    def test_a_worker_that_ends_has_left(self):
        prefill = self.cluster.prefill[0]
        self.assertEqual(prefill.stop(), 0)
        self.wait_state("prefill", "left")
        prefill.start()
        self.wait_state("prefill", "ready")

    def test_a_silent_router_is_lost_and_nothing_is_claimed_meanwhile(self):
        self.cluster.router.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: not healthy(self.monitor), NOTICE_S, "the router is missed")
            self.assertNotIn("troupe_worker_up", self.monitor.get("/metrics").body.decode())
            run = top(self.cluster.router.port)
            self.assertEqual(run.returncode, 1)
            self.assertIn("no answer within 3 s", run.stderr)
        finally:
            self.cluster.router.send_signal(signal.SIGCONT)
        wait_until(lambda: healthy(self.monitor), 20, "the router has returned")
        self.assertEqual(self.up("decode"), {1})


class OneProcessTest(unittest.TestCase):
    def test_top_shows_a_single_process_as_well(self):
        run = top(shared_server().port)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("1 of 1 workers take requests", run.stdout)
        self.assertIn("mixed", run.stdout)


class MonitorStartTest(unittest.TestCase):
    def test_a_monitor_waits_for_its_router_and_is_not_let_in_with_another_secret(self):
        with Cluster(prefill=0, decode=1, role="mixed") as cluster:
            early = Program("troupe-monitor", "--join", f"127.0.0.1:{free_port()}", "--http-port",
                            port := free_port(), secret=cluster.secret, port=port)
            cluster.add(early)
            stranger = make_monitor(cluster, secret=cluster.write_secret("other"))
            early.says("ready:")
            stranger.says("secret")
            for monitor in (early, stranger):
                self.assertEqual(monitor.get("/health").status, 503)
                self.assertEqual(monitor.get("/cluster").json()["workers"], [])
                self.assertEqual(monitor.stop(), 0)


if __name__ == "__main__":
    unittest.main()
