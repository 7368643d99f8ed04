"""Usage: cluster_load_test.py [--seconds N]

Many clients at once on 2 + 2 processes, with prompts and answers of mixed lengths, a fifth of them
leaving early: every stream that was read to its end is right, no block is lost on any worker, and
memory stays. The test takes some seconds of load; --seconds 120 is the long run."""

import http.client
import json
import random
import sys
import threading
import time
import unittest

from cluster import Cluster
from server import MODEL, parse_events

CLIENTS = 64
SECONDS = 12
STREAM_S = 120
KINDS = 12  # of requests; each has one right answer, whoever computes it and whatever is cached
STORY = "The old lighthouse keeper climbed the stairs every evening, counting each of them aloud. "
# After the caches are full, per worker: more is a leak.
GROWTH_MAX = 48 << 20


def bodies():
    plan = random.Random(7)
    return [{"prompt": f"Chapter {i}. " + STORY * plan.choice([0, 1, 3, 8]),
             "max_tokens": plan.choice([1, 6, 16, 30]), "temperature": plan.choice([0, 0.8]),
             "seed": i, "ignore_eos": True} for i in range(KINDS)]


class Client(threading.Thread):
    """Asks one request after the other until told to end; keeps what was wrong."""

    def __init__(self, number, router, requests, expected, until):
        super().__init__()
        self.plan = random.Random(number)
        self.router, self.requests, self.expected, self.until = router, requests, expected, until
        self.faults, self.finished, self.left = [], 0, 0

    def run(self):
        while time.monotonic() < self.until:
            kind = self.plan.randrange(KINDS)
            line = http.client.HTTPConnection("127.0.0.1", self.router.port, timeout=STREAM_S)
            try:
                self.ask(line, kind, leaves=self.plan.random() < 0.2)
            except Exception as error:  # it is a fault, whatever it is
                self.faults.append(f"{type(error).__name__}: {error}")
            finally:
                line.close()

    def ask(self, line, kind, leaves):
        line.request("POST", "/v1/completions",
                     json.dumps({"model": MODEL, "stream": True} | self.requests[kind]),
                     {"Content-Type": "application/json"})
        if leaves:
            time.sleep(self.plan.random() * 0.5)
            self.left += 1
            return
        response = line.getresponse()
        content = response.read()
        if response.status != 200:
            self.faults.append(f"{response.status}: {content[:200]}")
            return
        events = parse_events(content)
        text = "".join(event["choices"][0]["text"] for event in events if "choices" in event)
        if text != self.expected[kind]:
            self.faults.append(f"request {kind}: {text!r} instead of {self.expected[kind]!r}")
        self.finished += 1


def run_load(cluster, seconds, clients=CLIENTS):
    requests = bodies()
    expected = [cluster.router.complete(**body)["choices"][0]["text"] for body in requests]
    until = time.monotonic() + seconds
    crowd = [Client(i, cluster.router, requests, expected, until) for i in range(clients)]
    for client in crowd:
        client.start()
    for client in crowd:
        client.join(seconds + STREAM_S)
    return crowd


class ClusterLoadTest(unittest.TestCase):
    seconds = SECONDS

    def test_64_clients_of_which_a_fifth_leaves_lose_no_block(self):
        with Cluster(prefill=2, decode=2) as cluster:
            run_load(cluster, 1)
            cluster.wait_idle()
            before = [program.resident_bytes() for program in cluster.programs]
            crowd = run_load(cluster, self.seconds)
            self.assertFalse(any(client.is_alive() for client in crowd), "a client hangs")
            self.assertEqual([fault for client in crowd for fault in client.faults], [])
            finished = sum(client.finished for client in crowd)
            left = sum(client.left for client in crowd)
            print(f"{finished} streams right, {left} left early", file=sys.stderr)
            self.assertGreater(finished, CLIENTS)
            self.assertGreater(left, 0)
            cluster.wait_idle(15)
            cluster.assert_alive()
            for program, bytes_before in zip(cluster.programs, before):
                with self.subTest(program.name):
                    self.assertLess(program.resident_bytes() - bytes_before, GROWTH_MAX)


if __name__ == "__main__":
    if "--seconds" in sys.argv:
        at = sys.argv.index("--seconds")
        ClusterLoadTest.seconds = float(sys.argv[at + 1])
        del sys.argv[at:at + 2]
    unittest.main()
