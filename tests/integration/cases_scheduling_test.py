"""Reports of users, tried: clients that leave while they wait or while their prompt is computed,
requests larger than the pool, preemption, tenants that must not see each other's prefixes."""

import json
import socket
import struct
import threading
import time
import unittest

from server import MODEL, Server, chat, shared_server, wait_until

COMPLETIONS = "/v1/completions"
LONG = {"prompt": "Go on for ever:", "max_tokens": 4000, "ignore_eos": True, "temperature": 0}


def leave(line, how):
    if how == "reset":
        line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    if how == "half":
        line.shutdown(socket.SHUT_WR)
    else:
        line.close()


def numbers(server, *names):
    values = server.metrics()
    return [sum(values[name].values()) for name in names]


class LeavingTest(unittest.TestCase):
    def open(self, server, body, stream=False):
        content = json.dumps({"model": MODEL, "stream": stream} | body).encode()
        line = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        line.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                     b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                     % len(content) + content)
        return line

    def test_who_leaves_an_answer_that_is_not_streamed_leaves_nothing_behind(self):
        server = shared_server()
        for how, count in (("close", 20), ("reset", 10), ("half", 10)):
            with self.subTest(how):
                aborted = server.metric("vllm:request_success_total", finished_reason="abort")
                lines = [self.open(server, LONG, stream=i % 4 == 3) for i in range(count)]
                wait_until(lambda: server.metric("vllm:num_requests_running") == count, 20,
                           "all run")
                for line in lines:
                    leave(line, how)
                server.wait_idle(4)
                generated = server.metric("vllm:generation_tokens_total")
                if how == "half":  # cancelled, and the connection ends
                    for line in lines:
                        line.settimeout(5)
                        while line.recv(65536):
                            pass
                        line.close()
                self.assertEqual(server.metric("vllm:request_success_total",
                                               finished_reason="abort") - aborted, count)
                time.sleep(0.2)
                self.assertEqual(server.metric("vllm:generation_tokens_total"), generated)

    def test_who_leaves_while_waiting_is_never_computed(self):
        chunk = 64
        with Server("--max-running", 1, "--max-step-tokens", chunk) as server:
            first = self.open(server, LONG | {"max_tokens": 150}, stream=True)
            first.recv(65536)
            began = numbers(server, "vllm:prompt_tokens_total",
                            "vllm:iteration_tokens_total_sum")
            waiting = [self.open(server, LONG | {"prompt": [7] * 500, "n": n}) for n in (1, 2)]
            wait_until(lambda: server.metric("vllm:num_requests_waiting") >= 2, 20, "they wait")
            for line in waiting:
                line.close()
            wait_until(lambda: server.metric("vllm:num_requests_waiting") == 0, 4,
                       "none waits although the first goes on")
            self.assertEqual(server.metric("vllm:num_requests_running"), 1)
            # One that leaves in the middle of its prompt stops within a step.
            first.close()
            prompt = 6000
            third = self.open(server, LONG | {"prompt": [9] * prompt, "max_tokens": 5})
            wait_until(lambda: numbers(server, "vllm:iteration_tokens_total_sum")[0]
                       > began[1] + 2 * chunk, 20, "its prompt is being computed")
            third.close()
            answer = server.complete("And now", max_tokens=2)
            self.assertEqual(answer["usage"]["completion_tokens"], 2)
            server.wait_idle(4)
            computed = numbers(server, "vllm:iteration_tokens_total_sum")[0] - began[1]
            self.assertLess(computed, prompt / 2)

    def test_a_step_keeps_to_its_time_by_smaller_chunks_of_prompts(self):
        """A time that no step can keep: chunks of 64 tokens. No wish: the whole prompt at once."""
        answers = []
        for wish, steps in ((1, 8), (0, 1)):
            with Server("--step-time-ms", wish) as server:
                answer = server.complete([11] * 500, max_tokens=1, temperature=0)
                answers.append(answer["choices"][0]["text"])
                self.assertEqual(numbers(server, "vllm:iteration_tokens_total_count")[0], steps)
                self.assertEqual(numbers(server, "vllm:iteration_tokens_total_sum")[0], 500)
        self.assertEqual(answers[0], answers[1])

    def test_who_leaves_does_not_hold_a_place(self):
        """More than the server takes at once: the places of those who left are free."""
        with Server("--max-requests", 4) as server:
            for _ in range(3):
                lines = [self.open(server, LONG, stream=True) for _ in range(4)]
                for line in lines:
                    self.assertIn(b"200 OK", line.recv(65536))
                self.assertEqual(server.post(COMPLETIONS, {"model": MODEL, "prompt": "x"}).status,
                                 429)
                for line in lines:
                    line.close()
                server.wait_idle(4)


class PoolTest(unittest.TestCase):
    def test_what_never_fits_is_refused_at_once_and_nobody_waits_for_it(self):
        with Server("--kv-blocks", 16) as server:  # 256 tokens; the context is 8,192
            small = [{"prompt": f"Number {i} is", "max_tokens": 4, "temperature": 0}
                     for i in range(5)]
            alone = [server.complete(**body)["choices"] for body in small]
            began = time.monotonic()
            reply = server.post(COMPLETIONS, {"model": MODEL, "prompt": [5] * 2000})
            self.assertLess(time.monotonic() - began, 5)
            self.assertEqual(reply.status, 400)
            for number in ("2000", "256"):
                self.assertIn(number, reply.json()["error"]["message"])
            self.assertEqual([server.complete(**body)["choices"] for body in small], alone)
            # The prompt fits, what it asks for does not: said before it starts.
            reply = server.post(COMPLETIONS, {"model": MODEL, "prompt": "x", "max_tokens": 4000})
            self.assertEqual(reply.status, 400)
            self.assertIn("256", reply.json()["error"]["message"])
            # Without a limit of its own a chat gets what there is, and ends by length.
            answer = server.post("/v1/chat/completions", {"model": MODEL, "temperature": 0}
                                 | chat("Count to a million.", ignore_eos=True)).json()
            self.assertEqual(answer["choices"][0]["finish_reason"], "length")
            self.assertLessEqual(answer["usage"]["total_tokens"], 256)
            server.wait_idle()

    def test_preemption_changes_no_id_no_number_and_no_end(self):
        bodies = [{"prompt": f"Chapter {i}. " + "The rain went on. " * (i % 5), "max_tokens": 40,
                   "temperature": 0.8, "seed": i, "frequency_penalty": 0.4, "ignore_eos": True,
                   "repetition_penalty": 1.1, "logprobs": 1, "stop": [" never said", "\n\n"]}
                  for i in range(12)]
        with Server() as server:
            alone = [server.complete(**body) for body in bodies]
        with Server("--kv-blocks", 12) as server:
            found = [None] * len(bodies)

            def ask(i):
                if i % 2:
                    found[i] = server.complete(**bodies[i])
                else:
                    found[i] = server.stream(COMPLETIONS, bodies[i] | {
                        "stream_options": {"include_usage": True}})
            threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(bodies))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
            server.wait_idle()
        for i, (got, expected) in enumerate(zip(found, alone)):
            with self.subTest(i):
                choice = expected["choices"][0]
                if i % 2:
                    self.assertEqual(got["choices"], expected["choices"])
                    usage = got["usage"]
                else:
                    usage, events = got[-1]["usage"], [e["choices"][0] for e in got[:-1]]
                    self.assertEqual("".join(e["text"] for e in events), choice["text"])
                    self.assertEqual([e["finish_reason"] for e in events
                                      if e["finish_reason"]], [choice["finish_reason"]])
                    for name in ("tokens", "token_logprobs"):
                        self.assertEqual([v for e in events if e["logprobs"]
                                          for v in e["logprobs"][name]], choice["logprobs"][name])
                for name in ("prompt_tokens", "completion_tokens"):
                    self.assertEqual(usage[name], expected["usage"][name])


class CacheTest(unittest.TestCase):
    def test_a_salt_parts_what_tenants_have_in_common(self):
        server = shared_server()
        # No other test begins like this: without a salt the first tokens may be shared.
        prompt = "Xylophone makers publish their annual report, chapter one. " * 36

        def ask(salt, path=COMPLETIONS):
            body = {"prompt": prompt} if path == COMPLETIONS else chat(prompt)
            reply = server.post(path, {"model": MODEL, "max_tokens": 2, "temperature": 0,
                                       "cache_salt": salt} | body)
            self.assertEqual(reply.status, 200, reply.body)
            answer = reply.json()
            return (answer["usage"]["prompt_tokens_details"]["cached_tokens"], answer["choices"])
        for path in (COMPLETIONS, "/v1/chat/completions"):
            cached, expected = ask("tenant a", path)
            self.assertEqual(cached, 0)
            for salt in ("tenant b", "tenant a ", "Tenant a"):
                self.assertEqual(ask(salt, path), (0, expected), salt)
            # Without a salt, what templates begin a chat with may be shared with earlier chats.
            cached, choices = ask(None, path)
            self.assertLess(cached, 40)
            self.assertEqual(choices, expected)
            for salt in ("tenant a", "tenant b", None):
                cached, choices = ask(salt, path)
                self.assertGreater(cached, 300)
                self.assertEqual(choices, expected)

    def test_an_aborted_prompt_leaves_its_finished_blocks_usable(self):
        server = shared_server()
        prompt = "A prompt whose client leaves before the answer, and who asks again later. " * 20
        expected = server.complete(prompt, max_tokens=4, temperature=0, cache_salt="other")
        line = server.open_stream({"prompt": prompt, "max_tokens": 2000, "ignore_eos": True},
                                  path=COMPLETIONS)
        line.recv(65536)
        line.close()
        server.wait_idle(4)
        again = server.complete(prompt, max_tokens=4, temperature=0)
        self.assertGreater(again["usage"]["prompt_tokens_details"]["cached_tokens"], 200)
        self.assertEqual(again["choices"], expected["choices"])


if __name__ == "__main__":
    unittest.main()
