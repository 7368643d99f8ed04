"""Hostile and mistaken requests: each gets an answer that helps, and none harms the next one."""

import json
import socket
import time
import unittest

from server import MODEL, chat, shared_server

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
HEALTHY = {"model": MODEL, "prompt": "The sky is", "max_tokens": 3, "temperature": 0}
ERROR_BYTES_MAX = 4096


def user(**fields):
    return {"model": MODEL} | chat("Say hi.") | {"max_tokens": 4, "temperature": 0} | fields


def prompt(**fields):
    return HEALTHY | fields


def raw(text):
    """A body that json.dumps would not write."""
    return text.replace("M0DEL", MODEL).encode()


HEAD = '{"model":"M0DEL","messages":[{"role":"user","content":"x"}],'

# (name, path, body, expected status, expected param or None for any)
REFUSED = [
    # Limits on tokens.
    *((f"chat max_tokens {value!r}", CHAT, user(max_tokens=value), 400, "max_tokens")
      for value in (0, -1, 1.5, "8", 10**30, True, [1])),
    ("chat max_tokens 1e30", CHAT, raw(HEAD + '"max_tokens":1e30}'), 400, "max_tokens"),
    ("completions max_tokens -1", COMPLETIONS, prompt(max_tokens=-1), 400, "max_tokens"),
    ("misspelt limit", CHAT, user(max_tokns=9), 400, "max_tokns"),
    # Messages.
    *((f"messages {value!r}", CHAT, user(messages=value), 400, None)
      for value in ([], None, {}, [[]], "hi", 7, [None])),
    ("no messages", CHAT, {"model": MODEL}, 400, "messages"),
    ("message without content", CHAT, user(messages=[{"role": "user"}]), 400,
     "messages[0].content"),
    ("message of a wizard", CHAT, user(messages=[{"role": "wizard", "content": "x"}]), 400,
     "messages[0].role"),
    ("message without role", CHAT, user(messages=[{"content": "x"}]), 400, "messages[0].role"),
    ("9,000 bad messages", CHAT, user(messages=[{"role": 1}] * 9000), 400, None),
    ("streamed mistake", CHAT, user(messages=[], stream=True), 400, "messages"),
    # Sampling.
    *((f"temperature {value!r}", CHAT, user(temperature=value), 400, "temperature")
      for value in (-0.1, "0.7", 2.5, [])),
    ("temperature NaN", CHAT, raw(HEAD + '"temperature":NaN}'), 400, None),
    ("temperature 1e400", CHAT, raw(HEAD + '"temperature":1e400}'), 400, None),
    ("temperature -Infinity", CHAT, raw(HEAD + '"temperature":-Infinity}'), 400, None),
    *((f"top_p {value!r}", CHAT, user(top_p=value), 400, "top_p") for value in (1.1, -1, "x")),
    ("top_k -7", CHAT, user(top_k=-7), 400, "top_k"),
    ("min_p 2", CHAT, user(min_p=2), 400, "min_p"),
    ("frequency_penalty 3", CHAT, user(frequency_penalty=3), 400, "frequency_penalty"),
    ("repetition_penalty 0", CHAT, user(repetition_penalty=0), 400, "repetition_penalty"),
    ("seed 'x'", CHAT, user(seed="x"), 400, "seed"),
    *((f"n {value!r}", CHAT, user(n=value), 400, "n") for value in (0, -1, 10**6, "2")),
    *((f"logit_bias {value!r}", CHAT, user(logit_bias=value), 400, None)
      for value in ({"99999999": 5}, {"-1": 5}, {"abc": 5}, {"5": 101}, {"5": None}, [1], "x")),
    # Stops and logprobs.
    *((f"stop {value!r}"[:60], CHAT, user(stop=value), 400, None)
      for value in ("", [""], ["a", "b", "c", "d", "e"], [1], 7, "x" * 65536)),
    ("stop_token_ids out of range", CHAT, user(stop_token_ids=[10**9]), 400, None),
    ("top_logprobs without logprobs", CHAT, user(top_logprobs=3), 400, "top_logprobs"),
    ("top_logprobs 99", CHAT, user(logprobs=True, top_logprobs=99), 400, "top_logprobs"),
    ("stream_options without stream", CHAT, user(stream_options={"include_usage": True}), 400,
     "stream_options"),
    # Prompts.
    *((f"prompt {value!r}"[:40], COMPLETIONS, prompt(prompt=value), 400, None)
      for value in (None, "", [], {}, 7, [""], [[]], [1, "x"], [1.5], [True], [-1], [10**9],
                    [[1], "x"], ["a"] * 5000)),
    ("prompt over the context", COMPLETIONS, prompt(prompt=[5] * 9000), 400, "prompt"),
    ("detokenize foreign ids", "/detokenize", {"model": MODEL, "tokens": [10**9]}, 400, None),
    ("tokenize nothing", "/tokenize", {"model": MODEL}, 400, None),
    # Other fields.
    ("foreign model", CHAT, user(model="gpt-9"), 404, "model"),
    ("model is a number", CHAT, user(model=5), 400, "model"),
    ("json schema", CHAT, user(response_format={"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"not": {}}}}), 400, "response_format.json_schema.schema.not"),
    ("tool_choice without tools", CHAT, user(tool_choice="required"), 400, "tool_choice"),
    # JSON itself.
    *((f"body {text!r}"[:40], CHAT, raw(text), 400, None)
      for text in ("", "{", "null", "[]", "7", '"x"', "{}x", HEAD, HEAD + '"a":1,}', "\x00",
                   '{"model":"M0DEL","model":"M0DEL"}')),
    ("100,000 open brackets", CHAT, b"[" * 100_000, 400, None),
    ("100,000 open objects", CHAT, b'{"a":' * 100_000, 400, None),
    ("deep field", CHAT, raw(HEAD + '"stop":' + "[" * 5000 + "]" * 5000 + "}"), 400, None),
    ("lone surrogate", CHAT,
     raw('{"model":"M0DEL","messages":[{"role":"user","content":"\\ud800"}]}'), 400, None),
    ("invalid UTF-8 in content", CHAT,
     raw('{"model":"M0DEL","messages":[{"role":"user","content":"') + b'\xc4\xe3\xc0\xaf"}]}', 400,
     None),
    ("invalid UTF-8 in a name", CHAT, raw(HEAD) + b'"\xff\xfe":1}', 400, None),
    ("invalid UTF-8 in stop", CHAT, raw(HEAD) + b'"stop":"\xc0\xaf"}', 400, None),
]

ACCEPTED = [
    ("temperature null", CHAT, user(temperature=None)),
    ("stop null", CHAT, user(stop=None)),
    ("stop []", CHAT, user(stop=[])),
    ("decomposed stop", CHAT, user(stop="e\u0301")),
    ("top_k far over the vocabulary", CHAT, user(top_k=500_000)),
    ("top_k -1, as vLLM has it", CHAT, user(top_k=-1)),
    ("escaped surrogate pair", CHAT,
     raw('{"model":"M0DEL","max_tokens":2,"messages":'
         '[{"role":"user","content":"\\ud83e\\udda6"}]}')),
    ("nul character in content", CHAT, user(messages=[{"role": "user", "content": "a\x00b"}])),
    ("user and metadata", CHAT, user(user="u", metadata={"a": "b"})),
    ("content in parts", CHAT, user(messages=[{"role": "user", "content": [
        {"type": "text", "text": "Say"}, {"type": "text", "text": "hi."}]}])),
]


class BadInputTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.healthy = self.server.post(COMPLETIONS, HEALTHY).json()["choices"]

    def assert_alive(self):
        reply = self.server.post(COMPLETIONS, HEALTHY)
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(reply.json()["choices"], self.healthy)

    def test_every_mistake_is_named_and_the_next_request_works(self):
        for name, path, body, status, param in REFUSED:
            with self.subTest(name):
                reply = self.server.post(path, body)
                self.assertEqual(reply.status, status, reply.body[:500])
                self.assertEqual(reply.headers["Content-Type"].split(";")[0], "application/json")
                self.assertLess(len(reply.body), ERROR_BYTES_MAX)
                error = reply.json()["error"]
                self.assertTrue(error["message"])
                self.assertIsInstance(error["type"], str)
                self.assertIn("param", error)
                self.assertIn("code", error)
                if param is not None:
                    self.assertEqual(error["param"], param, error)
                self.assert_alive()

    def test_what_only_looks_wrong_is_accepted(self):
        for name, path, body in ACCEPTED:
            with self.subTest(name):
                reply = self.server.post(path, body)
                self.assertEqual(reply.status, 200, reply.body[:500])

    def raw_exchange(self, data, timeout=20):
        """Sends bytes, and returns all that comes back before the server closes."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=timeout) as line:
            try:
                line.sendall(data)
                line.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused before it was read whole
            received = b""
            try:
                while piece := line.recv(65536):
                    received += piece
            except ConnectionResetError:
                pass
            return received

    def assert_refused(self, reply, *statuses):
        self.assertTrue(any(reply.startswith(f"HTTP/1.1 {s}".encode()) for s in statuses),
                        reply[:300])

    def test_bytes_that_are_no_http_end_their_connection_only(self):
        for data in (b"\x00\xff\xfe" * 100, b"GET\r\n\r\n", b"hello\r\n\r\n",
                     b"\x16\x03\x01\x02\x00",
                     b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                     b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
            with self.subTest(data[:30]):
                reply = self.raw_exchange(data)
                self.assertFalse(reply.startswith(b"HTTP/1.1 2"), reply[:200])
                self.assert_alive()

    def test_floods_of_headers_are_refused(self):
        for name, head in (("one of 10 MB", b"X-A: " + b"a" * 10_000_000 + b"\r\n"),
                           ("100,000", b"".join(b"X-%d: a\r\n" % i for i in range(100_000)))):
            with self.subTest(name):
                reply = self.raw_exchange(b"GET /health HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n")
                self.assertFalse(reply.startswith(b"HTTP/1.1 2"), reply[:200])
                self.assert_alive()
        reply = self.raw_exchange(b"GET /" + b"a" * 1_000_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertFalse(reply.startswith(b"HTTP/1.1 2"), reply[:200])
        self.assert_alive()

    def test_a_body_that_is_announced_too_large_is_refused_unread(self):
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as line:
            line.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                         b"Content-Length: 10000000000\r\n\r\n")
            self.assert_refused(line.recv(65536), 413)
        self.assertLess(time.monotonic() - began, 5)
        self.assert_alive()

    def test_a_body_over_the_limit_is_refused_with_the_limit(self):
        body = json.dumps(user(messages=[{"role": "user", "content": "x" * 5_000_000}])).encode()
        reply = self.raw_exchange(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n"
                                  b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.assert_refused(reply, 413)
        error = json.loads(reply.partition(b"\r\n\r\n")[2])["error"]
        self.assertRegex(error["message"], r"\d")
        self.assert_alive()

    def test_a_chunked_body_without_end_is_cut(self):
        chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
        reply = self.raw_exchange(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                                  b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 200)
        if reply:
            self.assert_refused(reply, 413, 400)
        self.assert_alive()

    def test_invalid_bytes_in_path_and_header_are_survived(self):
        for data in (b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                     b"GET /health HTTP/1.1\r\nHost: x\r\nX-Request-Id: \xc0\xaf\r\n"
                     b"Connection: close\r\n\r\n"):
            with self.subTest(data):
                reply = self.raw_exchange(data)
                head, _, body = reply.partition(b"\r\n\r\n")
                body.decode("utf-8")
                self.assert_alive()

    def test_a_long_request_id_is_not_repeated_in_every_chunk(self):
        body = json.dumps({"model": MODEL, "stream": True} | chat("Count.", max_tokens=30)).encode()
        reply = self.server.post(CHAT, body, headers={"X-Request-Id": "i" * 4000})
        self.assertEqual(reply.status, 200)
        self.assertLess(len(reply.body), 60_000)
        self.assertNotIn(b"iiiiiiiiii" * 20, reply.body)

    def test_memory_stays_flat_over_large_mistakes(self):
        big = user(messages=[{"role": "user", "content": "y" * 3_000_000}])
        self.server.post(CHAT, big)
        before = self.server.resident_bytes()
        for _ in range(8):
            self.assertEqual(self.server.post(CHAT, big).status, 400)  # over the context
        self.assertLess(self.server.resident_bytes() - before, 100 << 20)
        self.assert_alive()


if __name__ == "__main__":
    unittest.main()
