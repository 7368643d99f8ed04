"""16 streams run while a program of the cluster is killed, stopped, or started again: each of them
ends exactly once, with the right text or one clear error, and the cluster serves again with every
block where it was."""

import http.client
import json
import signal
import threading
import time
import unittest

from cluster import Cluster
from server import MODEL, parse_events, wait_until

STREAMS = 16
TOKENS = 24
STREAM_S = 60  # far beyond a good stream's time on a busy machine: what has not ended by then hangs
NOTICE_S = 10
STORY = "The old lighthouse keeper climbed the stairs every evening, counting each of them aloud. "
BODIES = [{"prompt": f"Chapter {i}. " + STORY * (1 + i % 6), "max_tokens": TOKENS,
           "temperature": 0 if i % 2 else 0.9, "seed": i, "ignore_eos": True}
          for i in range(STREAMS)]


class Stream:
    """A streaming completion in a thread of its own, and all that came of it."""

    def __init__(self, router, body):
        self.text, self.ends, self.errors, self.fault, self.tokens = "", [], [], None, 0
        self.thread = threading.Thread(target=self.run, args=(router.port, body))
        self.thread.start()

    def run(self, port, body):
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=STREAM_S)
        try:
            line.request("POST", "/v1/completions",
                         json.dumps({"model": MODEL, "stream": True} | body),
                         {"Content-Type": "application/json"})
            response = line.getresponse()
            content = b""
            while piece := response.read1(65536):
                content += piece
                self.tokens = content.count(b"data: ")
            if response.status != 200:
                self.errors.append(json.loads(content)["error"]["message"])
                return
            for event in parse_events(content):
                if "error" in event:
                    self.errors.append(event["error"]["message"])
                    continue
                choice = event["choices"][0]
                self.text += choice["text"]
                if choice["finish_reason"] is not None:
                    self.ends.append(choice["finish_reason"])
        except Exception as error:  # kept for the report: it is how the stream ended
            self.fault = f"{type(error).__name__}: {error}"
        finally:
            line.close()

    def wait(self):
        self.thread.join(STREAM_S + 5)
        return self


class ClusterFaultsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(prefill=2, decode=2).__enter__()
        cls.expected = [stream.wait().text for stream in cls.run_streams()]

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__()

    @classmethod
    def run_streams(cls):
        return [Stream(cls.cluster.router, body) for body in BODIES]

    def setUp(self):
        self.assertTrue(all(self.expected), "the undisturbed streams had no text")

    def while_streams_run(self, disturb, router_dies=False):
        """Disturbs once a quarter of the tokens has come; checks every stream's end."""
        streams = self.run_streams()
        wait_until(lambda: sum(stream.tokens for stream in streams) > STREAMS * TOKENS / 4,
                   STREAM_S, "the streams run")
        disturb()
        good = 0
        for i, stream in enumerate(streams):
            stream.wait()
            with self.subTest(stream=i):
                self.assertFalse(stream.thread.is_alive(), "the stream hangs")
                if router_dies and stream.fault is not None:
                    continue  # with the process that held its connection
                self.assertIsNone(stream.fault)
                self.assertEqual(len(stream.ends) + len(stream.errors), 1,
                                 f"ends: {stream.ends}, errors: {stream.errors}")
                if stream.ends:
                    self.assertEqual(stream.text, self.expected[i])
                    good += 1
                else:
                    self.assertTrue(self.expected[i].startswith(stream.text), "wrong text")
                    self.assertGreater(len(stream.errors[0]), 20, "the error says nothing")
        self.assert_serves_as_before()
        return good

    def assert_serves_as_before(self):
        self.cluster.wait_ready()
        self.cluster.wait_idle()
        for i in (0, 5):
            stream = Stream(self.cluster.router, BODIES[i]).wait()
            self.assertEqual((stream.fault, stream.errors), (None, []))
            self.assertEqual(stream.text, self.expected[i])
        self.cluster.wait_idle()
        self.cluster.assert_alive()

    def stop_for(self, program, seconds):
        program.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        program.send_signal(signal.SIGCONT)

    def test_a_killed_decode_worker_ends_only_its_own(self):
        good = self.while_streams_run(self.cluster.decode[0].restart)
        self.assertGreater(good, 0, "the other decode worker's streams ended, too")

    def test_a_killed_prefill_worker_ends_none(self):
        good = self.while_streams_run(self.cluster.prefill[0].restart)
        self.assertEqual(good, STREAMS)

    def test_all_prefill_workers_killed_end_none(self):
        def kill_all():
            for worker in self.cluster.prefill:
                worker.kill()
            for worker in self.cluster.prefill:
                worker.start()
        self.assertEqual(self.while_streams_run(kill_all), STREAMS)

    def test_a_stopped_decode_worker_ends_only_its_own(self):
        good = self.while_streams_run(lambda: self.stop_for(self.cluster.decode[1], 3))
        self.assertGreater(good, 0, "the other decode worker's streams ended, too")

    def test_a_stopped_prefill_worker_ends_none(self):
        good = self.while_streams_run(lambda: self.stop_for(self.cluster.prefill[1], 3))
        self.assertEqual(good, STREAMS)

    def test_a_killed_router_ends_its_streams_and_frees_their_blocks(self):
        def kill():
            self.cluster.router.kill()
            self.cluster.wait_idle(NOTICE_S)  # without a router, by themselves
            self.cluster.router.start()
        self.while_streams_run(kill, router_dies=True)

    def test_a_stopped_router_goes_on(self):
        self.while_streams_run(lambda: self.stop_for(self.cluster.router, 2))


if __name__ == "__main__":
    unittest.main()
