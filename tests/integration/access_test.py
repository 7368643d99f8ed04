"""API keys, CORS, methods and headers: who may ask, and how a request must look."""

import re
import signal
import socket
import tempfile
import time
import unittest
from pathlib import Path

import anthropic
import capnp

from rpc_client import Connection, run
from server import MODEL, Server, chat, shared_server, wait_until

KEY = "first-key-0123456789"
SECOND = "second-key-9876543210"
PAGE = "https://app.example.org"


def exchange(server, data, seconds=20):
    """Sends bytes as they are; everything that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as line:
        try:
            line.sendall(data)
        except OSError:
            pass  # it closed already
        got = b""
        try:
            while part := line.recv(65536):
                got += part
        except OSError:
            pass
        return got


def status_of(answer):
    return int(answer.split(b" ", 2)[1])


class KeyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.file = Path(cls.folder.name) / "keys"
        cls.write(f"# the second team\n\n{SECOND}\n")
        cls.server = Server.__new__(Server)
        Server.__init__(cls.server, "--api-key-file", cls.file, "--cors-origin", PAGE,
                        "--rpc-port", 0, environment={"TROUPE_API_KEY": KEY})
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    @classmethod
    def write(cls, text):
        cls.file.touch(mode=0o600)
        cls.file.write_text(text)

    def complete(self, **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.server.post("/v1/completions", {"model": MODEL, "prompt": "x",
                                                    "max_tokens": 1}, headers=headers)

    def test_without_a_known_key_everything_but_the_open_paths_is_401(self):
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY},
                        {"Authorization": f"Basic {KEY}"}, {"x_api_key": KEY[:-1]},
                        {"Authorization": "Bearer "}, {"x_api_key": ""}):
            reply = self.complete(**headers)
            self.assertEqual(reply.status, 401, headers)
            self.assertEqual(reply.json()["error"]["code"], "invalid_api_key")
            self.assertTrue(reply.headers["WWW-Authenticate"].startswith("Bearer"))
        for path in ("/v1/models", "/v1/models/smol", "/metrics", "/cluster", "/nothing"):
            self.assertEqual(self.server.get(path).status, 401, path)
        for path in ("/health", "/ping", "/version"):
            self.assertEqual(self.server.get(path).status, 200, path)

    def test_anthropics_package_knows_the_refusal(self):
        client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{self.server.port}",
                                     api_key="wrong", timeout=60, max_retries=0)
        message = {"model": MODEL, "messages": [{"role": "user", "content": "x"}]}
        for ask in (lambda: client.messages.create(max_tokens=1, **message),
                    lambda: client.messages.count_tokens(**message), client.models.list):
            with self.assertRaises(anthropic.AuthenticationError) as caught:
                ask()
            self.assertEqual(caught.exception.body["error"]["type"], "authentication_error")
            self.assertEqual(caught.exception.type, "authentication_error")
        known = client.with_options(api_key=KEY)
        self.assertEqual(known.messages.create(max_tokens=1, **message).usage.output_tokens, 1)

    def test_each_key_is_good_in_each_spelling(self):
        for key in (KEY, SECOND):
            for headers in ({"Authorization": f"Bearer {key}"}, {"Authorization": f"bearer {key}"},
                            {"x_api_key": key}):
                self.assertEqual(self.complete(**headers).status, 200, headers)

    def test_a_page_can_read_the_401_and_ask_before_it_has_a_key(self):
        preflight = self.server.request("OPTIONS", "/v1/chat/completions", headers={
            "Origin": PAGE, "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, content-type, x-stainless-os"})
        self.assertEqual(preflight.status, 204)
        self.assertEqual(preflight.headers["Access-Control-Allow-Origin"], PAGE)
        self.assertIn("POST", preflight.headers["Access-Control-Allow-Methods"])
        self.assertIn("x-stainless-os", preflight.headers["Access-Control-Allow-Headers"])
        self.assertIn("Origin", preflight.headers["Vary"])
        refused = self.complete(Origin=PAGE)
        self.assertEqual(refused.status, 401)
        self.assertEqual(refused.headers["Access-Control-Allow-Origin"], PAGE)
        good = self.complete(Origin=PAGE, x_api_key=KEY)
        self.assertEqual(good.status, 200)
        self.assertIn("X-Request-Id", good.headers["Access-Control-Expose-Headers"])
        self.assertEqual(good.headers["Vary"], "Origin")

    def test_a_page_of_another_origin_gets_no_leave(self):
        for origin in ("https://evil.example", PAGE + ".evil.example", "null"):
            reply = self.server.request("OPTIONS", "/v1/chat/completions", headers={
                "Origin": origin, "Access-Control-Request-Method": "POST"})
            self.assertNotIn("Access-Control-Allow-Origin", reply.headers)
            self.assertIn("Origin", reply.headers["Vary"])

    def test_keys_stand_neither_in_the_log_nor_in_the_printed_settings(self):
        self.complete(Authorization=f"Bearer {KEY}")
        self.complete(Authorization="Bearer a-wrong-key-that-was-typed")
        output = self.server.output()
        for key in (KEY, SECOND, "a-wrong-key-that-was-typed"):
            self.assertNotIn(key, output)

    def test_an_rpc_client_gives_its_key_before_it_may_ask(self):
        port = int(re.search(r"ready: rpc 127\.0\.0\.1:(\d+)", self.server.output()).group(1))

        async def main():
            async with Connection(port) as connection:
                serving = connection.serving
                self.assertTrue((await serving.health()).ready)
                for call in (lambda: serving.models(), lambda: serving.tokenize(prompt="x"),
                             lambda: serving.complete(model=MODEL, prompt={"text": "x"}),
                             lambda: serving.authenticate(key="a-key-that-nobody-knows")):
                    with self.assertRaises(capnp.KjException) as refused:
                        await call()
                    self.assertIn("API key", str(refused.exception))
                granted = (await serving.authenticate(key=KEY)).serving
                answer = (await granted.complete(model=MODEL, prompt={"text": "x"},
                                                 parameters={"maxTokens": 1})).answer
                self.assertEqual(answer.model, MODEL)
        run(main)

    def test_the_file_is_read_anew_on_sighup_and_a_broken_one_changes_nothing(self):
        third = "third-key-5555555555"
        self.write(third + "\n")
        self.server.send_signal(signal.SIGHUP)
        wait_until(lambda: self.complete(x_api_key=third).status == 200, 5, "the new key is good")
        self.assertEqual(self.complete(x_api_key=SECOND).status, 401)
        self.assertEqual(self.complete(x_api_key=KEY).status, 200)  # of the variable
        self.write("short\n")
        self.server.send_signal(signal.SIGHUP)
        wait_until(lambda: "stay as they are" in self.server.output(), 5, "the log says why")
        self.assertEqual(self.complete(x_api_key=third).status, 200)
        self.write(SECOND + "\n")
        self.server.send_signal(signal.SIGHUP)
        wait_until(lambda: self.complete(x_api_key=SECOND).status == 200, 5, "the old key again")


class HeaderTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def tearDown(self):
        self.server.wait_idle(10)

    def send(self, text, **options):
        return exchange(self.server, text if isinstance(text, bytes) else text.encode(), **options)

    def post(self, body, *lines, path="/v1/completions"):
        body = body if isinstance(body, bytes) else body.encode()
        head = "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}",
                            *lines])
        return (head + "\r\n\r\n").encode() + body

    def test_a_page_gets_no_leave_unless_the_operator_gives_it(self):
        reply = self.server.request("OPTIONS", "/v1/completions", headers={
            "Origin": PAGE, "Access-Control-Request-Method": "POST"})
        self.assertEqual(reply.status, 204)
        self.assertEqual(reply.headers["Allow"], "POST, OPTIONS")
        self.assertFalse([name for name in reply.headers if name.startswith("Access-Control")])
        self.assertEqual(self.server.request("OPTIONS", "/health").headers["Allow"],
                         "GET, HEAD, OPTIONS")

    def test_a_page_cannot_slip_in_what_it_may_send_without_asking(self):
        body = '{"model":"smol","prompt":"x","max_tokens":1}'
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            answer = self.send(self.post(body, f"Content-Type: {kind}", f"Origin: {PAGE}",
                                         "Connection: close"))
            self.assertEqual(status_of(answer), 415, answer)
        answer = self.send(self.post(body, "Content-Type: application/json; charset=utf-8",
                                     f"Origin: {PAGE}", "Connection: close"))
        self.assertEqual(status_of(answer), 200)
        # What curl -d sends.
        answer = self.send(self.post(body, "Content-Type: application/x-www-form-urlencoded",
                                     "Connection: close"))
        self.assertEqual(status_of(answer), 200)

    def test_a_compressed_body_and_an_unknown_expectation_are_refused(self):
        for line, status in (("Content-Encoding: gzip", 415), ("Expect: miracles", 417),
                             ("Content-Encoding: identity", 400), ("Expect: 100-Continue", 400)):
            answer = self.send(self.post("{", line, "Connection: close"))
            if answer.startswith(b"HTTP/1.1 100"):
                answer = answer.split(b"\r\n\r\n", 1)[1]
            self.assertEqual(status_of(answer), status, line)

    def test_a_body_that_is_refused_by_its_length_is_not_asked_for(self):
        answer = self.send("POST /v1/completions HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                           "Content-Length: 10737418240\r\n\r\n")
        self.assertEqual(status_of(answer), 413)

    def test_head_and_wrong_methods(self):
        for path in ("/health", "/v1/models", "/metrics", "/v1/models/smol", "/version"):
            answer = self.send(f"HEAD {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertEqual(status_of(answer), 200)
            self.assertTrue(answer.endswith(b"\r\n\r\n"), answer)
        for method, path, allow in (("HEAD", "/v1/completions", "POST, OPTIONS"),
                                    ("DELETE", "/v1/models", "GET, HEAD, OPTIONS"),
                                    ("PUT", "/v1/chat/completions", "POST, OPTIONS")):
            reply = self.server.request(method, path)
            self.assertEqual((reply.status, reply.headers["Allow"]), (405, allow))

    def test_paths_are_taken_as_they_are(self):
        for path, status in (("/health?x=1&y=%00", 200), ("/v1/models?limit=5", 200),
                             ("//v1/models", 404), ("/v1//models", 404), ("/v1/models/", 404),
                             ("/v1/../health", 404), ("/%68ealth", 404)):
            answer = self.send(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            self.assertEqual(status_of(answer), status, path)

    def test_pipelined_requests_are_answered_in_order_also_behind_an_error(self):
        good = self.post('{"model":"smol","prompt":"x","max_tokens":1}')
        bad = self.post("{not json")
        missing = b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
        last = b"GET /ping HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        answer = self.send(bad + good + missing + good + last)
        found = [int(part.split(b" ")[0]) for part in answer.split(b"HTTP/1.1 ")[1:]]
        self.assertEqual(found, [400, 200, 404, 200, 200])

    def test_a_flood_of_headers_is_answered_and_the_connection_closed(self):
        flood = {
            "one of 10 MB": b"X-A: " + b"a" * 10_000_000 + b"\r\n",
            "10,000 of them": b"".join(b"X-%d: y\r\n" % i for i in range(10_000)),
            "101 of them": b"".join(b"X-%d: y\r\n" % i for i in range(101)),
            "a request id of 1 MB": b"X-Request-Id: " + b"i" * 1_000_000 + b"\r\n",
        }
        before = self.server.resident_bytes()
        for name, lines in flood.items():
            answer = self.send(b"GET /health HTTP/1.1\r\nHost: x\r\n" + lines + b"\r\n")
            self.assertEqual(status_of(answer), 431, name)
        for path in (b"/" + b"a" * 1_000_000, b"/" + b"a" * 9000):
            answer = self.send(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertIn(status_of(answer), (414, 431))
        self.assertLess(self.server.resident_bytes() - before, 64 << 20)

    def test_an_answer_is_read_although_the_client_still_sends(self):
        for _ in range(5):
            answer = self.send(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
                               b"Content-Length: 8000000\r\n\r\n" + b"x" * 8_000_000)
            self.assertEqual(status_of(answer), 413)
            self.assertIn(b"body_too_large", answer)

    def test_an_error_names_the_first_of_many_faults_and_stays_small(self):
        reply = self.server.post("/v1/chat/completions",
                                 {"model": MODEL, "messages": [{"role": 1}] * 4000})
        self.assertEqual(reply.status, 400)
        self.assertLess(len(reply.body), 4096)

    def test_a_request_id_may_be_used_by_two_streams_and_a_cancel_ends_one(self):
        header = "X-Request-Id: same\r\n"
        for _ in range(20):
            first = self.server.open_stream(chat("Hi", max_tokens=30, ignore_eos=True,
                                                 temperature=0), headers=header)
            second = self.server.open_stream(chat("Hi", max_tokens=8, temperature=0),
                                             headers=header)
            first.recv(100)
            first.close()
            third = self.server.open_stream(chat("Hi", max_tokens=8, temperature=0),
                                            headers=header)
            texts = []
            for line in (second, third):
                got = b""
                while b"data: [DONE]" not in got:
                    part = line.recv(65536)
                    self.assertTrue(part, got)
                    got += part
                line.close()
                texts.append(b"".join(part.split(b'"}')[0] for part in
                                      got.split(b'"content":"')[1:]))
            self.assertEqual(texts[0], texts[1])
            self.assertTrue(texts[0])


class SlowTest(unittest.TestCase):
    def test_200_slow_senders_are_closed_at_a_deadline_while_others_are_served(self):
        server = shared_server()
        lines = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(200)]
        request = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Slow: " + b"a" * 60
        began = time.monotonic()
        open_lines, slowest = lines, 0.0
        try:
            for sent in range(len(request)):
                alive = []
                for line in open_lines:
                    try:
                        line.sendall(request[sent:sent + 1])
                        line.setblocking(False)
                        try:
                            if line.recv(4096) == b"":
                                continue
                        except BlockingIOError:
                            pass
                        line.setblocking(True)
                        alive.append(line)
                    except OSError:
                        pass
                open_lines = alive
                if not open_lines:
                    break
                asked = time.monotonic()
                self.assertEqual(server.get("/health").status, 200)
                slowest = max(slowest, time.monotonic() - asked)
                time.sleep(max(0.0, began + sent + 1 - time.monotonic()))
        finally:
            for line in lines:
                line.close()
        self.assertEqual(len(open_lines), 0)
        self.assertLess(time.monotonic() - began, 40)
        self.assertLess(slowest, 5)


if __name__ == "__main__":
    unittest.main()
