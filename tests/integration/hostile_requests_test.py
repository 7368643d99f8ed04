"""A thousand hostile requests, made from a seed: each gets one well-formed answer of the right
class or a closed connection, and afterwards the server is as it was."""

import copy
import http.client
import json
import random
import socket
import time
import unittest

from server import MODEL, Server, wait_until

SEED = 20261130
REQUESTS = 1000
ANSWER_S = 20

BODIES = {
    "/v1/completions": {"model": MODEL, "prompt": "The sky is", "max_tokens": 2, "temperature": 0.5,
                        "seed": 3, "n": 1, "logprobs": 1, "echo": False, "stop": ["\n"],
                        "logit_bias": {"5": 1.0}, "stream": False},
    "/v1/chat/completions": {"model": MODEL, "messages": [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        "max_tokens": 2, "top_p": 0.9, "stream": True, "stream_options": {"include_usage": True},
        "response_format": {"type": "text"}},
    "/tokenize": {"model": MODEL, "prompt": "Hello", "add_special_tokens": True},
    "/detokenize": {"model": MODEL, "tokens": [1, 2, 3]},
    "/v1/responses": {"model": MODEL, "input": "Hi", "max_output_tokens": 2},
    "/v1/messages": {"model": MODEL, "max_tokens": 2,
                     "messages": [{"role": "user", "content": "Hi"}]},
    "/v1/embeddings": {"model": MODEL, "input": "Hi"},
    "/v1/score": {"model": MODEL, "prompt": "a", "continuations": [" b"]},
}
GET_PATHS = ["/health", "/ping", "/version", "/v1/models", "/metrics", "/cluster"]
# What a value of any type may become.
STRANGE = [None, True, False, 0, -1, 1.5, -0.0, 2**31, 2**63, -2**63, 2**64, 1e308, 1e-320, "", "8",
           "\u0000", "\ud7ff", "é" * 50, "x" * 5000, [], {}, [[]], [None], [1] * 300, {"": {}},
           {"role": "user"}, ["a", 1], [[1], "x"], "\U0001F9A6" * 9]
RAW = [b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"00", b"1.", b"+1", b"'x'", b"\xff",
       b'"\xc4\xe3\xc0\xaf"', b'"\\ud800"', b'"\\u12"', b"[" * 2000, b'{"a":' * 500, b"",
       b"9" * 400, b'"' + b"a" * 100]
# Of what a request can be answered with: never a fault of the server's own.
ALLOWED = {200, 204, 400, 401, 403, 404, 405, 408, 413, 414, 415, 417, 422, 429, 431, 501, 503}


def places(value, path=()):
    """The paths to everything inside a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(
        value, list) else ()
    for key, member in inside:
        yield (*path, key)
        yield from places(member, (*path, key))


def parent_of(document, path):
    for key in path[:-1]:
        document = document[key]
    return document


class Hostile:
    """Makes the requests; each is bytes for the socket, and whether the client sends no more."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def mutated(self, body):
        """The body's bytes with one to three things wrong, or perhaps still right."""
        chance = self.random
        document = json.loads(json.dumps(body))
        marker = None
        for _ in range(chance.randint(1, 3)):
            path = chance.choice(list(places(document)) or [()])
            if not path:
                break
            parent, key, kind = parent_of(document, path), path[-1], chance.randrange(6)
            if kind == 0:
                del parent[key]
            elif kind == 1 and isinstance(parent, dict):
                parent[chance.choice(["tempratur", "", "x" * 300, "é\u0000"])] = parent[key]
            elif kind == 2:
                marker = "raw-value-here"
                parent[key] = marker
            elif kind == 3 and isinstance(parent[key], list):
                parent[key] = parent[key] * chance.choice([2, 200])
            else:
                # A copy: a value of its own in each place, or a document might contain itself.
                parent[key] = copy.deepcopy(chance.choice(STRANGE))
        text = json.dumps(document, ensure_ascii=chance.random() < 0.5).encode(
            "utf-8", "surrogatepass")
        if marker:
            text = text.replace(b'"raw-value-here"', chance.choice(RAW))
        kind = chance.randrange(12)
        if kind == 0:
            text = text[:chance.randrange(len(text) + 1)]
        elif kind == 1 and text:
            at = chance.randrange(len(text))
            text = text[:at] + bytes([chance.randrange(256)]) + text[at + 1:]
        elif kind == 2:
            text = text + chance.choice([b"}", b"\x00", b"{}", text])
        elif kind == 3:
            text = chance.randbytes(chance.choice([1, 50, 3000]))
        return text

    def framed(self, method, path, body):
        """A request whose framing may be broken."""
        chance = self.random
        lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: x", b"Connection: close"]
        lines.append(chance.choice([b"Content-Type: application/json"] * 6 + [
            b"Content-Type: text/plain", b"Content-Type: \xff\xfe", b"Content-Encoding: gzip",
            b"X-Request-Id: " + b"\xe9" * 20, b"Expect: 100-continue", b"Origin: http://x",
            b"X-Long: " + b"y" * 20000]))
        length = f"Content-Length: {len(body)}".encode()
        chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
        kind = chance.randrange(24)
        if kind == 0:
            lines += [length, b"Transfer-Encoding: chunked"]
        elif kind == 1:
            lines.append(chance.choice([b"Content-Length: -1", b"Content-Length: 5, 5",
                                        b"Content-Length: 0x10", b"Content-Length: 1e3",
                                        b"Content-Length: 99999999999999999999"]))
        elif kind == 2:
            lines += [length, length]
        elif kind == 3 and body:
            lines.append(b"Transfer-Encoding: chunked")
            body = chunked
        elif kind == 4:
            lines.append(b"Transfer-Encoding: chunked")
            body = chance.choice([b"zz\r\n" + body, b"-5\r\nabcde\r\n", b"5\r\nab\r\n0\r\n\r\n",
                                  b"fffffffffffffffff\r\n" + body])
        elif kind == 5:
            lines[0] = chance.choice([b"GET", b"POST / HTTP/9.9", b"\x16\x03\x01\x02\x00",
                                      b"FETCH /health HTTP/1.1", b"GET  /health  HTTP/1.1",
                                      b"POST \xff\xfe HTTP/1.1", b"GET /health HTTP/1.1\x00"])
            lines.append(length)
        elif kind == 6:
            lines.append(b"Content-Length: %d" % (len(body) + 50))  # more than comes
        else:
            lines.append(length)
        return b"\r\n".join(lines) + b"\r\n\r\n" + body

    def request(self):
        chance = self.random
        path = chance.choice(list(BODIES))
        method = "POST"
        if chance.random() < 0.1:
            method = chance.choice(["GET", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"])
        body = self.mutated(BODIES[path])
        if chance.random() < 0.08:
            path = chance.choice(GET_PATHS + ["/", "//", "/v1/models/%00", "/v1/models/" + "a" * 999,
                                              "*", path + "/", path.upper(), "http://x" + path])
        data = self.framed(method, path, body)
        cut = chance.randrange(len(data)) if chance.random() < 0.06 else None
        return (data if cut is None else data[:cut]), cut is not None


class HostileRequestsTest(unittest.TestCase):
    def exchange(self, data, leaves):
        """What comes back until the server closes; the client leaves early if it shall."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=ANSWER_S) as line:
            try:
                line.sendall(data)
                if leaves:
                    return None
                line.shutdown(socket.SHUT_WR) if b"Content-Length: 9999" in data else None
            except OSError:
                pass
            got = b""
            try:
                while part := line.recv(65536):
                    got += part
            except ConnectionError:
                pass
            return got

    def check(self, data, answer):
        """One answer, whole and well-formed; its status."""
        if answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"):
            answer = answer[len(b"HTTP/1.1 100 Continue\r\n\r\n"):]
        if answer == b"":
            return None  # closed without a word: only for what is no HTTP

        class Wire:
            def __init__(self, content):
                self.content = content

            def makefile(self, *_):
                import io
                return io.BytesIO(self.content)
        method = data.split(b" ", 1)[0].decode("ascii", "replace")
        response = http.client.HTTPResponse(Wire(answer), method=method)
        response.begin()
        body = response.read()
        self.assertIn(response.status, ALLOWED, answer[:600])
        if response.status >= 400 and method != "HEAD":
            self.assertLess(len(body), 4096)
            error = json.loads(body.decode("utf-8"))["error"]
            self.assertTrue(error["message"])
        elif response.status == 200 and method == "POST":
            text = body.decode("utf-8")
            if "text/event-stream" in response.getheader("Content-Type", ""):
                self.assertTrue(text.endswith("data: [DONE]\n\n") or "message_stop" in text
                                or "response.completed" in text or "response.incomplete" in text,
                                text[-300:])
            else:
                json.loads(text, parse_constant=lambda value: self.fail(value))
        return response.status

    def witness(self):
        return self.server.complete("The capital of France is", max_tokens=8, temperature=0,
                                    logprobs=1)["choices"]

    def test_a_thousand_hostile_requests(self):
        with Server("--kv-memory-mib", 64, "--context-length", 512) as self.server:
            expected = self.witness()
            memory = self.server.resident_bytes()
            hostile = Hostile(SEED)
            seen, silent = {}, 0
            for number in range(REQUESTS):
                data, leaves = hostile.request()
                if b"Content-Length: %d" % (len(data)) in data:
                    leaves = True
                try:
                    answer = self.exchange(data, leaves or self.waits_for_more(data))
                    if answer is None:
                        continue
                    status = self.check(data, answer)
                except (AssertionError, OSError, ValueError, KeyError, http.client.HTTPException) \
                        as error:
                    self.server.assert_alive(error)
                    raise AssertionError(f"request {number}: {data[:800]!r}\n{error}") from error
                silent += status is None
                seen[status] = seen.get(status, 0) + 1
                if number % 200 == 199:
                    self.assertEqual(self.witness(), expected)
            self.server.assert_alive()
            self.server.wait_idle(10)
            self.assertEqual(self.witness(), expected)
            self.assertLess(self.server.resident_bytes() - memory, 128 << 20)
            for status in (200, 400, 404, 405):
                self.assertGreater(seen.get(status, 0), 0, seen)
            self.assertGreater(seen[400], REQUESTS // 4, seen)
            self.assertLess(silent, REQUESTS // 20, seen)
            wait_until(lambda: self.server.metric("troupe_client_requests") == 0, 10,
                       "no request is left")

    @staticmethod
    def waits_for_more(data):
        """Whether a server must wait for the rest of it, so that the client has to leave."""
        head, separator, body = data.partition(b"\r\n\r\n")
        if not separator:
            return True
        for line in head.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            if name == b"Content-Length" and value.strip().isdigit():
                if len(body) < int(value) < 2**32:
                    return True
            if name == b"Transfer-Encoding" and not body.endswith(b"0\r\n\r\n"):
                return True
        return False


if __name__ == "__main__":
    unittest.main()
