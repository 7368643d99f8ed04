"""A thousand requests that are wrong, made by a seeded generator: each gets one well-formed answer
with the right status, on a connection that goes on; none harms a stream beside it, and no block is
lost."""

import collections
import copy
import http.client
import json
import random
import unittest

from server import MODEL, Witness, parse_events, shared_server

REQUESTS = 1000
SEED = 20
ERROR_BYTES_MAX = 4096

BODIES = {
    "/v1/chat/completions": {
        "model": MODEL, "max_tokens": 1, "temperature": 0.5, "top_p": 0.9, "seed": 1, "n": 1,
        "stop": ["x"], "logit_bias": {"5": 1}, "logprobs": True, "top_logprobs": 1,
        "messages": [{"role": "system", "content": "Be brief."},
                     {"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
    "/v1/completions": {
        "model": MODEL, "max_tokens": 1, "temperature": 0.5, "prompt": ["One", "Two"], "echo": True,
        "logprobs": 1, "stop": "x", "presence_penalty": 0.5, "min_p": 0.1, "top_k": 5},
    "/tokenize": {"model": MODEL, "prompt": "Hello"},
    "/detokenize": {"model": MODEL, "tokens": [1, 2, 3]},
}

# Values that are wrong wherever the valid body has one of the other kind.
MONSTERS = [None, True, -1, 0, 2**31, 2**63, 2**64, 10**400, -(10**30), 1.5, 1e300, "", "x", "é" * 9,
            "\ud83e\udda6", "\x00", "x" * 70_000, [], [[]], [None], [[[[[]]]]], {}, {"a": {}},
            [1] * 3000, {str(i): i for i in range(300)}, ["x"] * 300, [{"role": "user"}],
            {"type": "text"}]


def places(value, path=()):
    """The path of every value in a body."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from places(item, (*path, i))


def put(body, path, value):
    body = copy.deepcopy(body)
    if not path:
        return value
    at = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return body


class Generator:
    """Each kind gives (method, path, body as bytes, the statuses that are right)."""

    def __init__(self, seed):
        self.plan = random.Random(seed)
        self.kinds = [self.monster, self.monster, self.cut, self.flipped, self.unknown, self.twice,
                      self.deep, self.foreign_model, self.wrong_method, self.wrong_path,
                      self.noise, self.long]

    def make(self):
        return self.plan.choice(self.kinds)()

    def valid(self):
        path = self.plan.choice(sorted(BODIES))
        return path, BODIES[path] | ({"stream": True} if "/v1/" in path and self.plan.random() < 0.3
                                     else {})

    def monster(self):
        path, body = self.valid()
        where = self.plan.choice(list(places(body)))
        body = put(body, where, self.plan.choice(MONSTERS))
        return "POST", path, json.dumps(body).encode("utf-8", "surrogatepass"), (200, 400, 404)

    def cut(self):
        path, body = self.valid()
        text = json.dumps(body).encode()
        return "POST", path, text[:self.plan.randrange(len(text))], (400,)

    def flipped(self):
        path, body = self.valid()
        text = bytearray(json.dumps(body).encode())
        for _ in range(self.plan.choice([1, 1, 2, 5])):
            text[self.plan.randrange(len(text))] ^= 1 << self.plan.randrange(8)
        return "POST", path, bytes(text), (200, 400, 404)

    def unknown(self):
        path, body = self.valid()
        name = "".join(self.plan.choice("abcxyz_-é\u0000") for _ in range(self.plan.randrange(9)))
        return "POST", path, json.dumps(body | {name: 1}).encode(), (400,)

    def twice(self):
        path, body = self.valid()
        key = self.plan.choice(sorted(body))
        text = json.dumps(body)[:-1] + f", {json.dumps(key)}: {json.dumps(body[key])}}}"
        return "POST", path, text.encode(), (400,)

    def deep(self):
        path, body = self.valid()
        opened = self.plan.choice(["[", '{"a":'])
        depth = self.plan.choice([65, 500, 20_000])
        text = json.dumps(body)[:-1] + ', "user": ' + opened * depth
        if self.plan.random() < 0.5:
            text += "1" + ("]" if opened == "[" else "}") * depth + "}"
        return "POST", path, text.encode(), (400,)

    def foreign_model(self):
        path, body = self.valid()
        name = self.plan.choice(["gpt-9", MODEL.upper(), MODEL + " ", "../" + MODEL, "a" * 5000])
        return "POST", path, json.dumps(body | {"model": name}).encode(), (404,)

    def wrong_method(self):
        path, body = self.valid()
        method = self.plan.choice(["GET", "PUT", "DELETE", "PATCH"])
        return method, path, json.dumps(body).encode(), (405,)

    def wrong_path(self):
        _, body = self.valid()
        path = "/" + "/".join(self.plan.choice(["v1", "v2", "chat", "%00", "..", "a" * 300, "%ff"])
                              for _ in range(self.plan.randrange(1, 5)))
        return self.plan.choice(["GET", "POST"]), path, json.dumps(body).encode(), (404,)

    def noise(self):
        path, _ = self.valid()
        return "POST", path, self.plan.randbytes(self.plan.choice([0, 1, 9, 1000, 50_000])), (400,)

    def long(self):
        path, body = self.valid()
        text = self.plan.choice(["word ", "\n", "é", "🦦", "<|im_end|>"]) * 60_000
        for name in ("prompt", "messages"):
            if name in body and path != "/tokenize":
                value = text if name == "prompt" else [{"role": "user", "content": text}]
                return "POST", path, json.dumps(body | {name: value}).encode(), (400,)
        return self.cut()


class HostileTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.line = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        self.addCleanup(self.line.close)
        self.statuses = collections.Counter()

    def ask(self, method, path, body):
        self.line.request(method, path, body, {"Content-Type": "application/json"})
        response = self.line.getresponse()
        return response, response.read()

    def check(self, request):
        method, path, body, right = request
        response, content = self.ask(method, path, body)
        self.assertIn(response.status, right, content[:300])
        self.statuses[response.status] += 1
        kind = response.headers["Content-Type"] or ""
        if response.status == 200 and kind.startswith("text/event-stream"):
            parse_events(content)
            return
        self.assertTrue(kind.startswith("application/json"), kind)
        answer = json.loads(content.decode("utf-8"))
        if response.status == 200:
            return
        self.assertLessEqual(len(content), ERROR_BYTES_MAX)
        self.assertEqual(set(answer["error"]), {"message", "type", "param", "code"})
        self.assertTrue(answer["error"]["message"])
        if response.status == 405:
            self.assertTrue(response.headers["Allow"])

    def test_a_thousand_hostile_requests_get_one_right_answer_each(self):
        generator = Generator(SEED)
        with Witness(self.server):
            for number in range(REQUESTS):
                request = generator.make()
                with self.subTest(number=number, method=request[0], path=request[1],
                                  body=request[2][:200]):
                    try:
                        self.check(request)
                    except (OSError, http.client.HTTPException) as error:
                        self.server.assert_alive(error)
                        self.line.close()
                        self.fail(f"no answer: {error!r}")
        self.assertEqual(self.statuses.total(), REQUESTS)
        self.assertLessEqual({200, 400, 404, 405}, set(self.statuses))
        self.assertLess(self.statuses[200], REQUESTS / 4)
        self.server.complete("The sky is", max_tokens=2)
        self.server.wait_idle()


if __name__ == "__main__":
    unittest.main()
