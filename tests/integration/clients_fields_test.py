"""Every field that the openai package can send is honoured, has no effect on purpose, or is refused
by its name; none is ignored in silence. The package's own types say what there is, down to the
fields of fields, so a new version of it shows what came new."""

import collections.abc
import copy
import inspect
import re
import types
import typing
import unittest

import typing_extensions
from server import MODEL, ROOT, shared_server

SAMPLES_MAX = 12  # of one field
DEPTH_MAX = 5
REQUIRED = (typing.Required, typing_extensions.Required)
WRAPPERS = (*REQUIRED, typing.NotRequired, typing_extensions.NotRequired, typing.Annotated)

# What a value has to look like where its type says too little.
VALUES = {
    "model": MODEL, "logit_bias": {"5": 1}, "top_logprobs": 2, "max_tokens": 3,
    "max_completion_tokens": 3, "max_output_tokens": 3, "n": 2, "best_of": 1, "seed": 7,
    "temperature": 0.5, "top_p": 0.5, "frequency_penalty": 0.5, "presence_penalty": 0.5,
    "stop": "\n", "logprobs": 2, "dimensions": 8, "arguments": "{}", "url": "data:image/png;base64,",
    "metadata": {"a": "b"}, "parameters": {"type": "object", "properties": {}},
    "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
}


def members(kind):
    """The fields of a TypedDict by name: (type, required)."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name: (t, typing.get_origin(t) in REQUIRED) for name, t in hints.items()}


def samples(kind, name, depth=0):
    """[(path below, value)]: values of the type, each with the paths of the fields it has."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in WRAPPERS:
        return samples(arguments[0], name, depth)
    if origin in (typing.Union, types.UnionType):
        return [s for a in arguments if a is not type(None) for s in samples(a, name, depth)]
    if origin is typing.Literal:
        return [("", value) for value in arguments]
    if hasattr(kind, "__required_keys__"):
        return dictionary(kind, depth)
    if name in VALUES and depth:
        return [("", VALUES[name])]
    if origin in (list, tuple, collections.abc.Iterable, collections.abc.Sequence):
        return [(f"[]{path}", [value]) for path, value in samples(arguments[0], name, depth)]
    if origin in (dict, collections.abc.Mapping):
        return [("", {"5": value}) for _, value in samples(arguments[1], name, depth)[:1]]
    return [("", {bool: True, int: 1, float: 0.5, str: "x", object: {}}.get(kind, "x"))]


def dictionary(kind, depth):
    if depth >= DEPTH_MAX:
        return [("", {})]
    fields = members(kind)
    least = {name: samples(t, name, depth + 1)[0][1] for name, (t, needed) in fields.items()
             if needed}
    found = [("", least)]
    for name, (t, _) in fields.items():
        found += [(f".{name}{path}", least | {name: value})
                  for path, value in samples(t, name, depth + 1)[:SAMPLES_MAX]]
    return found


# Taken without effect, and documented so: they are for the provider's books, or hints that a server
# may ignore.
WITHOUT_EFFECT = {"user", "store", "metadata", "service_tier", "safety_identifier",
                  "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"}

# Refused unless they ask for nothing: {}, [] or "none".
OFF_WHEN_EMPTY = {"audio", "prediction", "function_call", "functions", "web_search_options",
                  "moderation", "image", "access_programs", "background_options"}

CHAT = {"model": MODEL, "temperature": 1, "seed": 1, "max_tokens": 12,
        "messages": [{"role": "user", "content": "Say yes yes yes yes yes."}]}
COMPLETION = {"model": MODEL, "temperature": 1, "seed": 1, "max_tokens": 12,
              "prompt": "yes yes yes yes yes yes yes"}
SAMPLING = {"frequency_penalty": 2, "presence_penalty": 2, "logit_bias": {"260": 100},
            "max_tokens": 3, "n": 2, "seed": 2, "stop": ["e"], "temperature": 0, "top_p": 0.01}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {
    "type": "object", "properties": {}}}}

# Endpoint: what is sent at least, what makes a difference against it for each honoured field (a
# value, or all that has to be sent), and which are shown to be honoured by other tests.
ENDPOINTS = {
    "/v1/chat/completions": {
        "least": CHAT, "short": {"max_tokens": 1}, "differs": SAMPLING | {
            "max_completion_tokens": 3, "logprobs": True,
            "top_logprobs": lambda: ({"logprobs": True}, {"logprobs": True, "top_logprobs": 2}),
            "response_format": {"type": "json_object"},
            "tools": lambda: ({}, {"tools": [FUNCTION], "tool_choice": "required"}),
            "tool_choice": lambda: ({"tools": [FUNCTION], "tool_choice": "none"},
                                    {"tools": [FUNCTION], "tool_choice": "required"}),
            "messages": [{"role": "user", "content": "Say no."}]},
        "elsewhere": {"model", "stream_options", "modalities", "parallel_tool_calls"}},
    "/v1/completions": {
        "least": COMPLETION, "short": {"max_tokens": 1},
        "differs": SAMPLING | {"echo": True, "logprobs": 1, "prompt": "no no no no"},
        "elsewhere": {"model", "stream_options", "best_of"}},
}

ENDPOINTS |= {
    "/v1/embeddings": {
        "least": {"model": MODEL, "input": "x"},
        "differs": {"input": "y", "dimensions": 8, "encoding_format": "base64"},
        "elsewhere": {"model"}},
    "/v1/responses": {
        "least": {"model": MODEL, "input": "Say yes.", "temperature": 1, "top_p": 1,
                  "max_output_tokens": 16, "store": False},
        "differs": {
            "input": "Say no.", "instructions": "Answer in French.", "temperature": 0,
            "top_p": 0.01, "max_output_tokens": 17,
            "text": {"format": {"type": "json_object"}},
            "tools": lambda: ({}, {"tools": [TOOL], "tool_choice": "required"}),
            "tool_choice": lambda: ({"tools": [TOOL], "tool_choice": "none"},
                                    {"tools": [TOOL], "tool_choice": "required"})},
        "elsewhere": {"model", "previous_response_id", "stream_options", "include",
                      "top_logprobs", "truncation", "parallel_tool_calls", "background",
                      "reasoning"}},
}


def request_types():
    """Endpoint: (the method that the package sends it by, the type of its fields)."""
    from openai.resources.chat.completions import Completions as Chat
    from openai.resources.completions import Completions
    from openai.resources.embeddings import Embeddings
    from openai.resources.responses import Responses
    from openai.types import completion_create_params, embedding_create_params
    from openai.types.chat import completion_create_params as chat_create_params
    from openai.types.responses import response_create_params
    return {
        "/v1/chat/completions": (Chat.create, chat_create_params.CompletionCreateParamsBase),
        "/v1/completions": (Completions.create,
                            completion_create_params.CompletionCreateParamsBase),
        "/v1/embeddings": (Embeddings.create, embedding_create_params.EmbeddingCreateParams),
        "/v1/responses": (Responses.create, response_create_params.ResponseCreateParamsBase),
    }


def said(answer):
    """What an answer says, without ids and times."""
    if "output" in answer:
        return [(item["type"], item.get("content"), item.get("arguments"))
                for item in answer["output"]]
    choices = copy.deepcopy(answer.get("choices") or answer["data"])
    for choice in choices:
        for call in choice.get("message", {}).get("tool_calls") or []:
            call["id"] = None
    return choices


class FieldsTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()

    def outcome(self, path, body, sent):
        """"taken", "refused", or what is wrong with the answer. `sent`: the fields beside the
        least ones."""
        reply = self.server.post(path, body)
        if reply.status == 200:
            return "taken"
        error = reply.json()["error"]
        if reply.status == 404 and error["param"] in sent:
            return "invalid_value"  # names what does not exist
        # Fields of fields may be strange to the server as long as it says so.
        if reply.status != 400 or "not a known field" in error["message"] and error["param"] in sent:
            return f"{reply.status}: {error}"
        if not (error["param"] or "").startswith(tuple(sent)):
            return f"the error names {error['param']}: {error}"
        # A sample may break a rule of its field; that is not silence either.
        return "refused" if error["code"] == "unsupported_parameter" else error["code"]

    def outcomes(self, path, kind, least):
        """{field path: the set of outcomes of its samples}"""
        tools = {"tools": [TOOL if path == "/v1/responses" else FUNCTION]}
        beside = {"top_logprobs": {"logprobs": True} if path != "/v1/responses" else {},
                  "stream_options": {"stream": True}, "tool_choice": tools,
                  "parallel_tool_calls": tools}
        found = {}
        for name, (t, _) in members(kind).items():
            if name in VALUES and name != "logprobs":
                values = [("", VALUES[name])]
            else:
                values = samples(t, name)
            for below, value in values:
                sent = beside.get(name, {}) | {name: value}
                found.setdefault(name + below, set()).add(
                    self.outcome(path, least | sent, sent))
        return found

    def test_the_types_are_what_the_package_sends(self):
        for path, (create, kind) in request_types().items():
            sent = set(inspect.signature(create).parameters) - {
                "self", "extra_headers", "extra_query", "extra_body", "timeout", "stream"}
            self.assertEqual(set(members(kind)), sent, path)

    def test_no_field_is_lost_in_silence(self):
        for path, (_, kind) in request_types().items():
            rules = ENDPOINTS[path]
            found = self.outcomes(path, kind, rules["least"] | rules.get("short", {}))
            self.assertGreater(len(found), len(members(kind)) - 1)
            for field, outcomes in found.items():
                with self.subTest(path=path, field=field):
                    self.assertLessEqual(outcomes, {"taken", "refused", "invalid_value"})
            # What is taken has an effect that a test shows, or is known to have none.
            taken = {re.split(r"[.\[]", field)[0] for field, outcomes in found.items()
                     if "taken" in outcomes}
            self.assertLessEqual(taken - OFF_WHEN_EMPTY, set(rules["differs"])
                                 | rules["elsewhere"] | WITHOUT_EFFECT)

    def test_every_honoured_field_makes_a_difference(self):
        for path, rules in ENDPOINTS.items():
            plain = said(self.server.post(path, rules["least"]).json())
            for name, value in rules["differs"].items():
                with self.subTest(path=path, field=name):
                    without, having = value() if callable(value) else ({}, {name: value})
                    expected = plain
                    if without:
                        expected = said(self.server.post(path, rules["least"] | without).json())
                    reply = self.server.post(path, rules["least"] | having)
                    if reply.status == 400:
                        self.assertEqual(reply.json()["error"]["code"], "unsupported_parameter")
                        continue
                    self.assertEqual(reply.status, 200, reply.body[:300])
                    self.assertNotEqual(said(reply.json()), expected)


class ManualTest(unittest.TestCase):
    """The tables of docs/api.md against the server: what they call refused is refused by name, what
    has no effect is taken and has none, and what is honoured is read."""

    LEAST = {path: rules["least"] for path, rules in ENDPOINTS.items()} | {
        "/v1/responses": {"model": MODEL, "input": "Say yes.", "temperature": 0,
                          "max_output_tokens": 16, "store": False},
        "/v1/messages": {"model": MODEL, "max_tokens": 4, "temperature": 0,
                         "messages": [{"role": "user", "content": "Say yes."}]},
        "/v1/messages/count_tokens": {"model": MODEL,
                                      "messages": [{"role": "user", "content": "Say yes."}]},
        "/v1/score": {"model": MODEL, "prompt": "x", "continuations": ["y"]},
        "/tokenize": {"model": MODEL, "prompt": "x"},
        "/detokenize": {"model": MODEL, "tokens": [1]},
    }
    # Read for an accounting that this server does not do, but their form is checked.
    FORMS = {"metadata": {"user_id": "x"}}

    def setUp(self):
        self.server = shared_server()

    @staticmethod
    def tables():
        """[(paths, field, use)] of the manual."""
        paths, rows = [], []
        for line in (ROOT / "docs/api.md").read_text("utf-8").splitlines():
            if line.startswith("### POST "):
                paths = line.removeprefix("### POST ").split(", ")
            elif line.startswith("## "):
                paths = []
            elif paths and (row := re.match(r"\| `(\w+)` \| ([a-z ]+) \|", line)):
                rows.append((paths, row[1], row[2]))
        return rows

    @staticmethod
    def substance(answer):
        if {"output", "choices", "data"} & set(answer):
            return said(answer)
        return {name: value for name, value in answer.items() if name not in ("id", "usage")}

    def test_each_row_says_what_the_server_does(self):
        rows = self.tables()
        self.assertEqual({path for paths, *_ in rows for path in paths}, set(self.LEAST))
        plain = {path: self.substance(self.server.post(path, least).json())
                 for path, least in self.LEAST.items()}
        for paths, field, use in rows:
            for path in paths:
                with self.subTest(path=path, field=field, use=use):
                    self.check(path, field, use, plain[path])

    def check(self, path, field, use, plain):
        value = self.FORMS.get(field, "x") if use == "no effect" else [{"no such": "value"}]
        body = self.LEAST[path] | {field: value}
        if (path, field) == ("/tokenize", "messages"):
            body.pop("prompt")
        reply = self.server.post(path, body)
        if use == "no effect":
            self.assertEqual(reply.status, 200, reply.body[:300])
            self.assertEqual(self.substance(reply.json()), plain)
            return
        self.assertEqual(reply.status, 400, reply.body[:300])
        error = reply.json()["error"]
        self.assertIn(field, error["message"])
        self.assertNotIn(f"{field} is not a known field", error["message"])
        if path.startswith("/v1/messages"):
            self.assertEqual("is not supported by this server" in error["message"],
                             use == "refused")
        else:
            self.assertEqual(re.split(r"[.\[]", error["param"])[0], field)
            if use == "refused":
                self.assertEqual(error["code"], "unsupported_parameter")


if __name__ == "__main__":
    unittest.main()
