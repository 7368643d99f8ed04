"""Reports of users, tried: requests that are empty, too large, in another encoding or with an id
that is used twice. Each has its own answer, and a stream beside it notices nothing."""

import http.client
import json
import socket
import unittest

from bad_input_test import CHAT, COMPLETIONS, REFUSED, user
from server import MODEL, Witness, chat, parse_events, shared_server


def joined(events):
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events
                   if event["choices"])


class RequestCasesTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def assert_refused(self, reply, param=None, status=400):
        self.assertEqual(reply.status, status, reply.body[:500])
        error = reply.json()["error"]
        self.assertEqual(error["type"], "invalid_request_error")
        if param is not None:
            self.assertEqual(error["param"], param, error)
        return error

    def test_a_streamed_mistake_has_the_answer_of_the_other_one(self):
        with Witness(self.server):
            for name, path, body, status, _ in REFUSED:
                if not isinstance(body, dict) or path not in (CHAT, COMPLETIONS):
                    continue
                if "stream_options" in body:
                    continue  # with a stream it is right
                with self.subTest(name):
                    plain = self.server.post(path, body)
                    streamed = self.server.post(path, body | {"stream": True})
                    self.assertEqual(streamed.status, status)
                    self.assertEqual(streamed.headers["Content-Type"], "application/json")
                    self.assertEqual(streamed.json(), plain.json())

    def test_the_allowed_values_are_named(self):
        for messages, param, words in (
                ([], "messages", "at least"),
                ([{"role": "user"}], "messages[0].content", "string"),
                ([{"role": "wizard", "content": "x"}], "messages[0].role", "assistant"),
                ([{"content": "x"}], "messages[0].role", "user")):
            for stream in (False, True):
                error = self.assert_refused(self.server.post(
                    CHAT, {"model": MODEL, "messages": messages, "stream": stream}), param)
                self.assertIn(words, error["message"])

    def test_no_new_tokens_score_the_prompt_in_every_form(self):
        for prompt in ("Hello world", [19556, 905], ["Hello world"], [[19556, 905]]):
            for stream in (False, True):
                for logprobs in (None, 0, 1, 5):
                    with self.subTest(prompt=prompt, stream=stream, logprobs=logprobs):
                        self.check_scores(prompt, stream, logprobs)
        for fields in ({}, {"stream": True}, {"logprobs": 2}):  # no echo: nothing to say
            answer = self.server.complete("Hello world", max_tokens=0) if not fields else None
            if answer is not None:
                self.assertEqual(answer["choices"][0]["text"], "")
                self.assertEqual(answer["usage"]["completion_tokens"], 0)
        self.assertEqual(self.server.complete("x", max_tokens=1)["usage"]["completion_tokens"], 1)

    def check_scores(self, prompt, stream, logprobs):
        body = {"prompt": prompt, "max_tokens": 0, "echo": True, "logprobs": logprobs}
        if stream:
            events = self.server.stream(COMPLETIONS, body | {
                "stream_options": {"include_usage": True}})
            self.assertEqual(events[-1]["choices"], [])
            usage, choices = events[-1]["usage"], [e["choices"][0] for e in events[:-1]]
            text = "".join(choice["text"] for choice in choices)
            scores = [s for c in choices if c["logprobs"] for s in c["logprobs"]["token_logprobs"]]
        else:
            answer = self.server.complete(**body)
            usage, text = answer["usage"], answer["choices"][0]["text"]
            found = answer["choices"][0]["logprobs"]
            scores = found["token_logprobs"] if found else []
        self.assertEqual((text, usage["completion_tokens"], usage["prompt_tokens"]),
                         ("Hello world", 0, 2))
        if logprobs is None:
            self.assertEqual(scores, [])
        else:
            self.assertEqual(len(scores), 2)
            self.assertIsNone(scores[0])
            self.assertLess(scores[1], 0)

    def test_bytes_of_another_encoding_come_back_as_text(self):
        bad = b"\xc4\xe3\xc0\xaf"
        bodies = [b'{"model":"' + bad + b'"}', b'{"' + bad + b'":1}']
        for field in (b"stop", b"user", b"prompt", b"cache_salt", b"tools"):
            bodies.append(b'{"model":"smol","messages":[{"role":"user","content":"x"}],"' + field
                          + b'":"' + bad + b'"}')
        bodies.append(b'{"model":"smol","messages":[{"role":"' + bad + b'","content":"x"}]}')
        bodies.append(b'{"model":"smol","messages":[{"role":"user","content":"' + bad + b'"}]}')
        with Witness(self.server):
            for path in (CHAT, COMPLETIONS, "/tokenize", "/detokenize"):
                for body in bodies:
                    with self.subTest(path=path, body=body[:40]):
                        error = self.assert_refused(self.server.post(path, body))
                        self.assertIn("UTF-8", error["message"])
                for body in (bad, bad * 1000):
                    self.assert_refused(self.server.post(path, body))

    def test_foreign_bytes_in_the_request_s_head_are_answered_in_utf_8(self):
        for head in (b"GET /\xc4\xe3 HTTP/1.1\r\n", b"GET /v1/models/\xc4\xe3\xc0\xaf HTTP/1.1\r\n",
                     b"GET /%c4%e3%c0%af HTTP/1.1\r\n", b"GET /v1/models/%ff%00 HTTP/1.1\r\n",
                     b"GET /nothing HTTP/1.1\r\nX-Request-Id: \xc4\xe3\xc0\xaf\r\n",
                     b"GET /nothing HTTP/1.1\r\nX-\xff\xfe: 1\r\n"):
            with self.subTest(head), \
                    socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as line:
                line.sendall(head + b"Host: x\r\n\r\n")
                response = http.client.HTTPResponse(line)
                response.begin()
                self.assertIn(response.status, (400, 404))
                response.read().decode("utf-8")
        self.server.complete("x", max_tokens=1)

    def test_a_connection_ends_behind_its_answer_when_the_client_says_so(self):
        def post(fields):
            body = json.dumps({"model": MODEL, "prompt": "x", "max_tokens": 2} | fields).encode()
            return (b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"
                    % len(body), body)
        requests = [(b"GET /health HTTP/1.1\r\nHost: x\r\n", b""),
                    (b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n", b""),
                    (b"GET /nothing HTTP/1.1\r\nHost: x\r\n", b""),
                    post({}), post({"stream": True}), post({"temperature": 9})]
        for head, body in requests:
            for value in (b"close", b"Keep-Alive , CLOSE"):
                with self.subTest(head=head, value=value), socket.create_connection(
                        ("127.0.0.1", self.server.port), timeout=10) as line:
                    line.sendall(head + b"Connection: " + value + b"\r\n\r\n" + body)
                    received = b""
                    while piece := line.recv(65536):  # until the server closes
                        received += piece
                    self.assertIn(b"\r\nConnection: close\r\n", received)
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=10) as line:
            for _ in range(2):
                line.sendall(b"GET /ping HTTP/1.1\r\nHost: x\r\nConnection: closed, x\r\n\r\n")
                response = http.client.HTTPResponse(line)
                response.begin()
                response.read()
                self.assertFalse(response.will_close)

    def test_both_names_of_the_limit_hold_on_each_endpoint(self):
        for fields in ({"max_tokens": 9}, {"max_completion_tokens": 9},
                       {"max_tokens": 18, "max_completion_tokens": 9}):
            for stream in (False, True):
                options = {"stream_options": {"include_usage": True}} if stream else {}
                for path, body in ((CHAT, chat("List the months and describe each.")),
                                   (COMPLETIONS, {"prompt": "January, February,"})):
                    body = body | fields | options | {"temperature": 0, "ignore_eos": True}
                    with self.subTest(path=path, fields=fields, stream=stream):
                        if stream:
                            usage = self.server.stream(path, body)[-1]["usage"]
                        else:
                            usage = self.server.post(path, {"model": MODEL} | body).json()["usage"]
                        self.assertEqual(usage["completion_tokens"], 9)

    def test_a_field_that_nobody_knows_is_never_lost(self):
        for path, body in ((CHAT, user()), (COMPLETIONS, {"model": MODEL, "prompt": "x"}),
                           ("/tokenize", {"model": MODEL, "prompt": "x"}),
                           ("/detokenize", {"model": MODEL, "tokens": [1]})):
            for name in ("max_tokns", "modle", "temprature", "x", ""):
                with self.subTest(path=path, name=name):
                    error = self.assert_refused(self.server.post(path, body | {name: 9}), name or '""')
                    self.assertIn("not a known field", error["message"])

    def test_an_id_used_twice_labels_and_no_more(self):
        """Two streams at once under one id; the first leaves, a third takes the id at once."""
        bodies = [chat(f"Count from {i}.", max_tokens=12, temperature=0, ignore_eos=True)
                  for i in range(3)]
        expected = [joined(self.server.stream(CHAT, body)) for body in bodies]
        headers = "X-Request-Id: same\r\n"
        for _ in range(25):
            first = self.server.open_stream(bodies[0] | {"max_tokens": 2000}, headers=headers)
            second = self.server.open_stream(bodies[1], headers=headers)
            first.close()
            third = self.server.open_stream(bodies[2], headers=headers)
            for line, text in ((second, expected[1]), (third, expected[2])):
                response = http.client.HTTPResponse(line)
                response.begin()
                self.assertEqual(response.headers["X-Request-Id"], "same")
                self.assertEqual(joined(parse_events(response.read())), text)
                line.close()
        self.server.wait_idle()

    def test_thousands_of_mistakes_are_one_short_error(self):
        with Witness(self.server):
            for messages in ([{"role": 1}] * 4000, [{"role": "user", "content": [{}] * 1000}] * 50,
                             [{"role": "x" * 100_000, "content": ""}] * 20):
                reply = self.server.post(CHAT, user(messages=messages))
                self.assert_refused(reply)
                self.assertLess(len(reply.body), 4096)
            many = self.server.post(COMPLETIONS, {"model": MODEL, "prompt": ["x", 1] * 60})
            self.assert_refused(many)


if __name__ == "__main__":
    unittest.main()
