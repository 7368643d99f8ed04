"""Start, end, and everything that can be wrong with a start."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from server import BUILD, MODEL_FILE, ROOT, TROUPE, Server, chat, free_port


def start_that_fails(*arguments, timeout=30):
    return subprocess.run([TROUPE, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, check=False, stdin=subprocess.DEVNULL)


class LifecycleTest(unittest.TestCase):
    def assert_error(self, run, *words):
        """A refusal in words: an exit status of its own, no signal, no trace."""
        self.assertGreater(run.returncode, 0, f"{run.returncode}: {run.stderr[-2000:]}")
        self.assertLess(run.returncode, 128, run.stderr[-2000:])
        text = run.stdout + run.stderr
        for word in words:
            self.assertIn(word.lower(), text.lower())
        self.assertNotIn("terminate called", text)

    def test_sigterm_finishes_what_runs_and_ends_with_0(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(number), Server() as server:
                line = server.open_stream(chat("Tell me a story.", max_tokens=40, temperature=0,
                                               ignore_eos=True))
                received = line.recv(65536)
                self.assertIn(b"200", received)
                server.send_signal(number)
                while piece := line.recv(65536):
                    received += piece
                head, _, _ = received.partition(b"\r\n\r\n")
                self.assertIn(b"data: [DONE]", received)
                self.assertIn(b'"finish_reason":"length"', received.replace(b'": ', b'":'))
                self.assertEqual(server.wait(), 0, server.output()[-2000:])

    def test_a_draining_server_takes_no_new_request(self):
        with Server() as server:
            line = server.open_stream(chat("Go on.", max_tokens=400, ignore_eos=True))
            line.recv(65536)
            server.send_signal(signal.SIGTERM)
            time.sleep(0.2)
            try:
                self.assertNotEqual(server.post("/v1/completions", {
                    "model": "smol", "prompt": "x", "max_tokens": 1}, timeout=5).status, 200)
            except OSError:
                pass  # not even a connection
            line.close()
            self.assertEqual(server.wait(), 0)

    def test_a_second_signal_ends_at_once(self):
        with Server() as server:
            line = server.open_stream(chat("Go on.", max_tokens=4000, ignore_eos=True))
            line.recv(65536)
            server.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            self.assertIsNone(server.process.poll(), "it should still finish the stream")
            server.send_signal(signal.SIGTERM)
            began = time.monotonic()
            server.wait(5)
            self.assertLess(time.monotonic() - began, 2)
            line.close()

    def test_a_stopped_process_goes_on_where_it_was(self):
        """Longer than the heartbeats' timeout: who slept himself does not call the others dead."""
        with Server() as server:
            line = server.open_stream(chat("Tell me a story.", max_tokens=100, temperature=0,
                                           ignore_eos=True))
            received = line.recv(65536)
            server.send_signal(signal.SIGSTOP)
            time.sleep(4)
            server.send_signal(signal.SIGCONT)
            while piece := line.recv(65536):
                received += piece
                if b"[DONE]" in received:
                    break
            line.close()
            self.assertIn(b'"finish_reason":"length"', received)
            server.complete("And now", max_tokens=4)

    def test_a_killed_server_leaves_its_port_free(self):
        port = free_port()
        for _ in range(2):
            with Server(port=port) as server:
                server.open_stream(chat("Go on.", max_tokens=1000)).recv(100)
                server.send_signal(signal.SIGKILL)
                server.wait()

    def test_a_taken_port_is_named(self):
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            run = start_that_fails("serve", MODEL_FILE, "--port", port)
            self.assert_error(run, str(port))

    def test_a_foreign_host_is_named(self):
        self.assert_error(start_that_fails("serve", MODEL_FILE, "--host", "203.0.113.7", "--port",
                                           free_port()), "203.0.113.7")

    def test_a_missing_or_foreign_model_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            whole = MODEL_FILE.read_bytes()
            cases = {"missing.gguf": None, "empty.gguf": b"", "four.gguf": b"GGUF",
                     "text.gguf": b"This is a text file.\n" * 100,
                     "cut.gguf": whole[:len(whole) * 6 // 10], "short.gguf": whole[:-1],
                     "header.gguf": whole[:4096]}
            for name, content in cases.items():
                path = Path(folder) / name
                if content is not None:
                    path.write_bytes(content)
                with self.subTest(name):
                    self.assert_error(start_that_fails("serve", path, "--port", free_port()), name)
            with self.subTest("a folder"):
                self.assert_error(start_that_fails("serve", folder, "--port", free_port()), folder)

    def test_an_unknown_architecture_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "foreign.gguf"
            content = MODEL_FILE.read_bytes()
            key = content.index(b"general.architecture")
            value = content.index(b"llama", key)
            path.write_bytes(content[:value] + b"lhama" + content[value + 5:])
            self.assert_error(start_that_fails("serve", path, "--port", free_port()), "lhama")

    def test_too_little_memory_is_refused_with_numbers(self):
        run = start_that_fails("serve", MODEL_FILE, "--port", free_port(), "--kv-memory", 10**9)
        self.assert_error(run, "memory")
        self.assertRegex(run.stdout + run.stderr, r"\d")

    def test_a_server_stays_on_a_memory_node_that_is_there(self):
        run = start_that_fails("serve", MODEL_FILE, "--port", free_port(), "--numa-node", 4000)
        self.assert_error(run, "no memory node 4000")
        before = os.sched_getaffinity(0)
        with Server("--numa-node", 0) as server:
            server.complete("Here", max_tokens=4)
            stays_on = os.sched_getaffinity(server.process.pid)
            self.assertTrue(stays_on and stays_on <= before, stays_on)

    def test_misspelt_and_impossible_flags_are_refused(self):
        for flags in (["--prot", "8080"], ["--port", "x"], ["--port", "70000"], ["--port", "-1"],
                      ["--threads", "-1"], ["--threads", "1000000"], ["--cpu-features", "sse9"],
                      ["--max-step-tokens", "0"], ["--max-running", "x"], ["--kv-blocks", "-1"],
                      ["--backend", "abacus"]):
            with self.subTest(flags):
                self.assert_error(start_that_fails("serve", MODEL_FILE, *flags), flags[0])
        self.assert_error(start_that_fails("serve"))
        self.assert_error(start_that_fails("sreve", MODEL_FILE))

    def test_a_request_larger_than_the_pool_is_refused_and_others_are_served(self):
        with Server("--kv-blocks", 64) as server:
            reply = server.post("/v1/completions", {"model": "smol", "prompt": [5] * 2000,
                                                    "max_tokens": 4})
            self.assertEqual(reply.status, 400, reply.body)
            self.assertIn("2000", reply.json()["error"]["message"].replace(",", ""))
            for _ in range(3):
                server.complete("A small one", max_tokens=4)
            server.wait_idle()

    @unittest.skipUnless(BUILD == ROOT / "build", "./serve runs the release build")
    def test_serve_is_ready_at_once_and_prints_a_curl_that_works(self):
        port = free_port()
        with tempfile.TemporaryFile("w+") as log:
            began = time.monotonic()
            process = subprocess.Popen([ROOT / "serve", "--port", str(port)], cwd="/",
                                       stdout=log, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL)
            try:
                command = None
                while command is None:
                    self.assertIsNone(process.poll(), "./serve ended")
                    self.assertLess(time.monotonic() - began, 30, "no ready line")
                    time.sleep(0.02)
                    log.seek(0)
                    found = re.search(r"curl .*", log.read())
                    command = found and found.group()
                ready_s = time.monotonic() - began
                answer = subprocess.run(["bash", "-c", command], capture_output=True, text=True,
                                        timeout=60, check=False)
                self.assertEqual(answer.returncode, 0, answer.stderr)
                self.assertIn('"choices"', answer.stdout)
                # 2 s is what ./serve promises on an idle machine; this one may be busy.
                self.assertLess(ready_s, 6)
            finally:
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(timeout=30), 0)

    def test_nothing_is_left_in_the_working_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            process = subprocess.run([TROUPE, "inspect", MODEL_FILE], cwd=folder, check=False,
                                     capture_output=True)
            self.assertEqual(process.returncode, 0)
            self.assertEqual(os.listdir(folder), [])


if __name__ == "__main__":
    unittest.main()
