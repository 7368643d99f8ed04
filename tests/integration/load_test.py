"""Many clients at once, leaving ones among them: everything finishes, nothing is left behind."""

import http.client
import json
import random
import socket
import threading
import unittest

from server import MODEL, chat, parse_events, shared_server, wait_until

STREAMS = 200
KILLED = 50


class LoadTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def tearDown(self):
        self.server.wait_idle(10)

    def test_200_concurrent_streams_of_mixed_lengths_finish(self):
        plan = random.Random(1)
        bodies = [{"model": MODEL, "stream": True, "temperature": 0, "ignore_eos": True,
                   "stream_options": {"include_usage": True},
                   "prompt": f"Number {i}. " + "word " * plan.choice([1, 5, 20, 60]),
                   "max_tokens": plan.choice([1, 4, 8, 16, 32])} for i in range(STREAMS)]
        connections = []
        for body in bodies:
            line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=110)
            line.request("POST", "/v1/completions", json.dumps(body),
                         {"Content-Type": "application/json"})
            connections.append(line)
        faults = []
        for i, (line, body) in enumerate(zip(connections, bodies)):
            response = line.getresponse()
            content = response.read()
            line.close()
            if response.status != 200:
                faults.append((i, response.status, content[:200]))
                continue
            events = parse_events(content)
            usage = events[-1]["usage"]
            if usage["completion_tokens"] != body["max_tokens"]:
                faults.append((i, usage, body["max_tokens"]))
        self.assertEqual(faults, [])

    def test_50_clients_killed_at_random_leave_no_block_behind(self):
        plan = random.Random(2)
        aborted = self.server.metric("vllm:request_success_total", finished_reason="abort")
        lines = []
        for i in range(KILLED):
            stream = i % 2 == 0
            body = chat(f"Story {i}. " + "word " * plan.choice([3, 100, 400]), max_tokens=1500,
                        ignore_eos=True, stream=stream)
            lines.append((self.server.open_stream(body), plan.random() * 1.5, i % 3 == 0))

        def leave(line, reset):
            if reset:  # a killed process with unread data: RST instead of FIN
                line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            line.close()
        timers = [threading.Timer(delay, leave, (line, reset)) for line, delay, reset in lines]
        for timer in timers:
            timer.start()
        for timer in timers:
            timer.join()
        self.server.wait_idle(4)
        self.assertEqual(
            self.server.metric("vllm:request_success_total", finished_reason="abort") - aborted,
            KILLED)

    def test_gauges_rest_after_100_streams_end_in_the_same_instant(self):
        lines = [self.server.open_stream(chat("Go on for ever.", max_tokens=1000, ignore_eos=True))
                 for _ in range(100)]
        wait_until(lambda: self.server.metric("vllm:num_requests_running") == 100, 20,
                   "all run")
        before = self.server.metrics()
        for line in lines:
            line.close()
        self.server.wait_idle(4)
        after = self.server.metrics()
        for name, samples in before.items():
            if name.endswith(("_total", "_count", "_bucket")):
                for labels, value in samples.items():
                    self.assertGreaterEqual(after[name][labels], value, f"{name} fell")

    def test_probes_answer_while_the_server_is_busy(self):
        lines = [self.server.open_stream(chat("Go on.", max_tokens=1000, ignore_eos=True))
                 for _ in range(32)]  # nobody reads them
        try:
            for path in ("/health", "/metrics", "/v1/models") * 5:
                self.assertEqual(self.server.get(path, timeout=2).status, 200)
        finally:
            for line in lines:
                line.close()


if __name__ == "__main__":
    unittest.main()
