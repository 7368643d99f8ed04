"""troupe bench: beside the real server's own counts, and against servers that misbehave."""

import json
import signal
import subprocess
import tempfile
import time
import unittest
import xml.dom.minidom
from pathlib import Path

from fake_llm_server import FakeServer
from server import TROUPE, free_port, shared_server, wait_until

QUICK = ("--prompt-tokens", 8, "--output-tokens", 4)


def bench(url, *arguments, timeout=60):
    return subprocess.run([TROUPE, "bench", "--url", url, *map(str, arguments)],
                          capture_output=True, text=True, timeout=timeout, check=False)


def result(url, *arguments, expect=0):
    run = bench(url, "--json", "-", *arguments)
    assert run.returncode == expect, f"{run.returncode}: {run.stdout}{run.stderr}"
    return json.loads(run.stdout)


class RealServerTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.url = f"http://127.0.0.1:{self.server.port}"

    def counts(self):
        return {name: self.server.metric(name) for name in
                ("vllm:prompt_tokens_total", "vllm:generation_tokens_total",
                 "vllm:request_success_total")}

    def test_a_closed_loop_counts_what_the_server_counts(self):
        before = self.counts()
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / name for name in ("a.json", "a.jsonl", "a.svg")]
            run = bench(self.url, "--requests", 12, "--concurrency", 3, "--prompt-tokens", "16:48",
                        "--output-tokens", 6, "--json", paths[0], "--records", paths[1],
                        "--svg", paths[2], "--slo", "ttft:60000", "--slo", "tpot:0.000001")
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            found = json.loads(paths[0].read_text())
            records = [json.loads(line) for line in paths[1].read_text().splitlines()]
            xml.dom.minidom.parse(str(paths[2]))
        after = self.counts()
        self.assertEqual(found["completed"], 12)
        self.assertEqual(found["total_output_tokens"], 72)
        for name, key in (("vllm:prompt_tokens_total", "total_input_tokens"),
                          ("vllm:generation_tokens_total", "total_output_tokens"),
                          ("vllm:request_success_total", "completed")):
            self.assertEqual(after[name] - before[name], found[key], name)
        self.assertEqual(found["token_counts_from"], {"usage": 12, "tokenize": 0, "chunks": 0})
        self.assertLessEqual(found["max_concurrent_requests"], 3)
        self.assertEqual(found["good"], 0)
        self.assertEqual(found["config"]["loop"], "closed")
        self.assertNotIn("api_key", found["config"])
        self.assertIn("12 completed, 0 failed", run.stdout)
        self.assertEqual(len(records), 12)
        for record in records:
            # A word was one token; the chat template adds the same to all.
            self.assertEqual(record["output_tokens"], 6)
            self.assertGreater(record["e2el_ms"], record["ttft_ms"])
            self.assertAlmostEqual(record["tpot_ms"],
                                   (record["e2el_ms"] - record["ttft_ms"]) / 5, places=6)
            self.assertAlmostEqual(sum(record["itl_ms"]), record["e2el_ms"] - record["ttft_ms"],
                                   places=3)

    def test_words_are_tokens_where_the_server_can_count(self):
        found = result(self.url, "--requests", 2, "--endpoint", "completions", "--prompt-tokens",
                       100, "--output-tokens", 2, "--seed", 5)
        self.assertEqual(found["input_lengths"]["min"], 100)
        self.assertEqual(found["input_lengths"]["max"], 100)
        self.assertTrue(found["config"]["prompt_words_counted_by_server"])

    def test_an_open_loop_sends_at_its_times_and_a_prefix_is_shared(self):
        cached = self.server.metric("vllm:prefix_cache_hits_total")
        found = result(self.url, "--rate", 10, "--arrival", "constant", "--requests", 6,
                       "--endpoint", "completions", "--prefix-tokens", 64, "--seed", 9, *QUICK)
        self.assertEqual(found["completed"], 6)
        self.assertGreaterEqual(found["duration"], 0.5)
        self.assertEqual(found["config"]["loop"], "open")
        self.assertEqual(found["client"]["lateness_ms"]["count"], 6)
        self.assertGreaterEqual(self.server.metric("vllm:prefix_cache_hits_total") - cached, 64)

    def test_later_turns_carry_the_answers_of_earlier_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "a.jsonl"
            result(self.url, "--turns", 3, "--requests", 6, "--concurrency", 2, "--records", path,
                   *QUICK)
            records = [json.loads(line) for line in path.read_text().splitlines()]
        lengths = {}
        for record in sorted(records, key=lambda record: record["turn"]):
            lengths.setdefault(record["conversation"], []).append(record["prompt_tokens"])
        self.assertEqual(sorted(lengths), [0, 1])
        for found in lengths.values():
            self.assertEqual(len(found), 3)
            # Each turn adds an answer of 4 tokens, a message of 8 and what the template puts around.
            self.assertGreaterEqual(found[1], found[0] + 12)
            self.assertGreaterEqual(found[2], found[1] + 12)

    def test_traces_and_files_of_prompts_are_replayed(self):
        with tempfile.TemporaryDirectory() as folder:
            trace, prompts = Path(folder) / "t.jsonl", Path(folder) / "p.jsonl"
            trace.write_text("".join(
                json.dumps({"timestamp": 2000 * i, "input_length": 20 + i, "output_length": 2 + i,
                            "hash_ids": [i]}) + "\n" for i in range(3)), encoding="utf-8")
            prompts.write_text('{"prompt": "One, two,", "output_tokens": 3}\n'
                               '{"messages": [{"role": "user", "content": "Hi"}]}\n',
                               encoding="utf-8")
            replayed = result(self.url, "--trace", trace, "--time-scale", 0.05, "--endpoint",
                              "completions")
            given = result(self.url, "--prompts", prompts, "--concurrency", 1)
            forced = result(self.url, "--prompts", prompts, "--output-tokens", 2)
        self.assertEqual(replayed["total_input_tokens"], 20 + 21 + 22)
        self.assertEqual(replayed["total_output_tokens"], 2 + 3 + 4)
        self.assertEqual(given["total_output_tokens"], 3 + 128)
        self.assertEqual(forced["total_output_tokens"], 4)

    def test_ctrl_c_prints_what_was_done(self):
        run = subprocess.Popen([TROUPE, "bench", "--url", self.url, "--requests", "1000",
                                "--concurrency", "2", "--prompt-tokens", "8", "--output-tokens",
                                "16"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = self.server.metric("vllm:request_success_total")
        wait_until(lambda: self.server.metric("vllm:request_success_total") > before + 1, 30,
                   "some answers")
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=10)
        self.assertEqual(run.returncode, 130)
        self.assertRegex(out, r"[1-9]\d* completed, 0 failed, [1-2] cancelled")
        self.assertIn("interrupted", out)
        self.server.wait_idle(4)


class FakeServerTest(unittest.TestCase):
    def errors(self, plan, *arguments, requests=4):
        with FakeServer(plan) as fake:
            return result(fake.url, "--requests", requests, "--concurrency", 2, *QUICK, *arguments,
                          expect=1)["errors"]

    def test_the_figures_are_those_of_a_server_with_known_times(self):
        with FakeServer(lambda *_: {"first_s": 0.05, "gap_s": 0.02}) as fake:
            found = result(fake.url, "--requests", 6, "--concurrency", 2, "--output-tokens", 11)
        self.assertEqual(found["completed"], 6)
        # Never less than the server waits; how much more depends on what else the machine does.
        for key, least in (("ttft", 50), ("tpot", 20), ("itl", 20), ("e2el", 250)):
            self.assertGreaterEqual(found[f"min_{key}_ms"], 0.98 * least, key)
            self.assertLess(found[f"median_{key}_ms"], 2 * least + 50, key)
        self.assertEqual(found["total_output_tokens"], 66)

    def test_every_misbehaviour_is_counted_by_its_kind(self):
        for kind, how in {
            "http 500": {"status": 500, "body": {"error": {"message": "oh no"}}},
            "http 429": {"status": 429, "headers": {"Retry-After": "1"}},
            "http 404": {"status": 404, "body": b"<html>"},
            "cut": {"cut_after": 2},
            "error event": {"error_after": 2},
            "malformed event": {"raw": b"data: {oops\n\n"},
            "no chunk": {"raw": b": nothing\n\n"},
        }.items():
            with self.subTest(kind):
                self.assertEqual({name: error["count"]
                                  for name, error in self.errors(lambda *_: how).items()},
                                 {kind: 4})

    def test_a_stream_that_ends_early_is_no_success(self):
        errors = self.errors(lambda *_: {"done": False, "finish": False})
        self.assertEqual(errors["cut"]["count"], 4)

    def test_silence_ends_with_the_deadline(self):
        began = time.monotonic()
        errors = self.errors(lambda *_: {"hang_after": 1}, "--timeout", 0.5, requests=2)
        self.assertEqual(errors["timeout"]["count"], 2)
        self.assertLess(time.monotonic() - began, 15)

    def test_a_server_that_is_not_there_is_named(self):
        url = f"http://127.0.0.1:{free_port()}"
        run = bench(url, "--requests", 1)
        self.assertEqual(run.returncode, 1)
        self.assertIn(url[len("http://"):], run.stderr)
        self.assertIn("--url", run.stderr)
        found = result(url, "--requests", 3, "--model", "m", expect=1)
        self.assertEqual(found["errors"]["connection refused"]["count"], 3)

    def test_429_is_retried_only_when_asked_for(self):
        def full_at_first(number, _):
            return {"status": 429, "headers": {"Retry-After": "0"}} if number < 3 else {}
        with FakeServer(full_at_first) as fake:
            found = result(fake.url, "--requests", 4, "--concurrency", 2, "--retry-429", *QUICK)
            self.assertEqual(found["completed"], 4)
            self.assertEqual(found["retries"], 3)
        with FakeServer(full_at_first) as fake:
            found = result(fake.url, "--requests", 4, "--concurrency", 2, *QUICK)
        self.assertEqual(found["completed"], 1)
        self.assertEqual(found["failed"], 3)

    def test_any_split_of_the_bytes_gives_the_same_counts(self):
        for size in (1, 7, 64):
            with self.subTest(size), FakeServer(lambda *_: {"split": size}) as fake:
                found = result(fake.url, "--requests", 2, "--endpoint", "completions", *QUICK)
                self.assertEqual(found["total_output_tokens"], 8)
                self.assertEqual(found["failed"], 0)

    def test_without_usage_tokens_are_counted_another_way_and_it_is_said(self):
        with FakeServer(lambda *_: {"usage": False}) as fake:
            found = result(fake.url, "--requests", 2, *QUICK)
        self.assertEqual(found["token_counts_from"]["chunks"], 2)
        self.assertEqual(found["total_output_tokens"], 8)
        self.assertEqual(found["total_input_tokens"], 16)
        self.assertIn("without usage", " ".join(found["warnings"]))
        self.assertFalse(found["config"]["prompt_words_counted_by_server"])
        with FakeServer(lambda *_: {"usage": False}, lambda text: len(text.split())) as fake:
            found = result(fake.url, "--requests", 2, *QUICK)
        self.assertEqual(found["token_counts_from"]["tokenize"], 2)
        self.assertTrue(found["config"]["prompt_words_counted_by_server"])

    def test_what_is_sent_is_what_the_flags_say(self):
        with FakeServer() as fake:
            result(fake.url, "--requests", 1, "--ignore-eos=false", "--max-tokens-field",
                   "max_tokens", "--temperature", 0.5, "--extra-body", '{"top_p": 0.9}', *QUICK)
            body = fake.seen[-1]
            self.assertEqual((body["max_tokens"], body["temperature"], body["top_p"]),
                             (4, 0.5, 0.9))
            self.assertNotIn("ignore_eos", body)
            self.assertEqual(body["model"], "fake")
            result(fake.url, "--requests", 1, "--endpoint", "completions", *QUICK)
            self.assertTrue(fake.seen[-1]["ignore_eos"])
            self.assertEqual(len(fake.seen[-1]["prompt"].split()), 8)

    def test_a_seed_repeats_the_load(self):
        prompts = []
        for seed in (1, 1, 2):
            with FakeServer() as fake:
                result(fake.url, "--requests", 3, "--concurrency", 1, "--seed", seed,
                       "--output-tokens", "1:50")
                prompts.append([(body["messages"], body["max_completion_tokens"])
                                for body in fake.seen])
        self.assertEqual(prompts[0], prompts[1])
        self.assertNotEqual(prompts[0], prompts[2])

    def test_requests_beyond_the_limit_of_an_open_loop_wait(self):
        with FakeServer(lambda *_: {"first_s": 0.1}) as fake:
            found = result(fake.url, "--rate", 200, "--requests", 6, "--max-concurrency", 2, *QUICK)
        self.assertEqual(found["max_concurrent_requests"], 2)
        self.assertGreater(found["max_client_queue_ms"], 100)
        self.assertEqual(found["client"]["lateness_ms"]["count"], 0)

    def test_mistakes_name_flag_rule_and_fix(self):
        for arguments, words in {
            ("--url", "ftp://x"): ("--url", "http://127.0.0.1:8000"),
            ("--rate", "1", "--concurrency", "2"): ("--concurrency", "--max-concurrency"),
            ("--max-concurrency", "2"): ("--max-concurrency", "--rate"),
            ("--slo", "itl:5"): ("--slo", "ttft:500"),
            ("--prompt-tokens", "0"): ("--prompt-tokens", "64:256"),
            ("--trace", "/nonexistent"): ("--trace", "/nonexistent"),
            ("--prompts", "/nonexistent"): ("--prompts", "/nonexistent"),
            ("--extra-body", "[]"): ("--extra-body", "top_p"),
            ("--rate", "-1"): ("--rate", "-1"),
            ("--concurency", "2"): ("--concurency",),
        }.items():
            with self.subTest(arguments):
                run = subprocess.run([TROUPE, "bench", *arguments], capture_output=True, text=True,
                                     timeout=20, check=False)
                self.assertGreater(run.returncode, 0)
                for word in words:
                    self.assertIn(word, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main()
