"""Answers that are held to a form, from the real model over HTTP: always valid, the same alone and
under load, and refused at once where the demand cannot be met."""

import json
import re
import threading
import time
import unittest

import jsonschema
import openai
from pydantic import BaseModel

from cluster import Cluster
from server import MODEL, Server, shared_server

PERSON = {
    "type": "object", "additionalProperties": False, "required": ["name", "age", "kind"],
    "properties": {"name": {"type": "string", "maxLength": 20},
                   "age": {"type": "integer", "minimum": 0, "maximum": 150},
                   "kind": {"enum": ["friend", "colleague"]},
                   "tags": {"type": "array", "items": {"type": "string", "maxLength": 8},
                            "maxItems": 2}}}
SCHEMAS = [
    PERSON,
    {"type": "integer", "minimum": 0, "maximum": 9000000000},
    {"type": "integer", "exclusiveMinimum": 1e3, "maximum": 1010},
    {"type": "number", "minimum": 0.5, "maximum": 2},
    {"type": "string", "format": "date"},
    {"type": "string", "pattern": "^[A-Z][a-z]{2,6}$"},
    {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 3},
    {"enum": ["red", "green", 7]},
    {"anyOf": [{"type": "null"}, {"const": {"a": 1}}]},
    {"type": "object", "properties": {"child": {"$ref": "#/$defs/leaf"}}, "required": ["child"],
     "$defs": {"leaf": {"type": "object", "properties": {"v": {"type": "integer"}},
                        "required": ["v"]}}},
]


def schema_format(schema, name="thing"):
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


class City(BaseModel):
    name: str
    people: int
    coastal: bool


class StructuredOutputTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = shared_server()
        cls.client = openai.OpenAI(base_url=f"http://127.0.0.1:{cls.server.port}/v1", api_key="x")

    def chat(self, text="Describe someone.", **fields):
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}]} | fields
        return self.server.post("/v1/chat/completions", body)

    def answer(self, **fields):
        reply = self.chat(**fields)
        self.assertEqual(reply.status, 200, reply.body[:600])
        return reply.json()["choices"][0]

    def refusal(self, **fields):
        before = time.monotonic()
        reply = self.chat(**fields)
        self.assertEqual(reply.status, 400, reply.body[:600])
        self.assertLess(time.monotonic() - before, 5)
        return reply.json()["error"]

    def assert_valid(self, schema, choice):
        value = json.loads(choice["message"]["content"], parse_constant=self.fail)
        jsonschema.validate(value, schema)
        self.assertEqual(choice["finish_reason"], "stop")

    def test_answers_are_valid_for_many_schemas_and_seeds(self):
        for schema in SCHEMAS:
            for seed in (1, 2):
                with self.subTest(schema=schema, seed=seed):
                    self.assert_valid(schema, self.answer(
                        response_format=schema_format(schema), temperature=1, seed=seed,
                        max_tokens=200))

    def test_any_object_is_one(self):
        for seed in range(3):
            choice = self.answer(response_format={"type": "json_object"}, temperature=1, seed=seed,
                                 max_tokens=60)
            if choice["finish_reason"] == "stop":
                self.assertIsInstance(json.loads(choice["message"]["content"]), dict)
            else:
                self.assertEqual(choice["finish_reason"], "length")
                self.assertTrue(choice["message"]["content"].startswith("{"))

    def test_the_names_of_the_older_servers_mean_the_same(self):
        asked = {"temperature": 1, "seed": 5, "max_tokens": 60}
        for fields in ({"structured_outputs": {"regex": "[a-f]{3}-\\d"}},
                       {"guided_regex": "[a-f]{3}-\\d"}):
            self.assertRegex(self.answer(**asked, **fields)["message"]["content"],
                             r"^[a-f]{3}-\d$")
        for fields in ({"structured_outputs": {"choice": ["yes", "no"]}},
                       {"guided_choice": ["yes", "no"]}):
            self.assertIn(self.answer(**asked, **fields)["message"]["content"], ("yes", "no"))
        for fields in ({"structured_outputs": {"json": PERSON}}, {"guided_json": PERSON},
                       {"guided_json": json.dumps(PERSON)}):
            self.assert_valid(PERSON, self.answer(**asked | {"max_tokens": 200}, **fields))
        grammar = 'root ::= "x" digit+ "!"\ndigit ::= [0-9]'
        for fields in ({"structured_outputs": {"grammar": grammar}}, {"guided_grammar": grammar}):
            choice = self.answer(**asked, **fields)
            self.assertTrue(re.match(r"^x\d+!?$", choice["message"]["content"]))
        reply = self.server.complete("Number:", guided_regex="\\d{4}", max_tokens=30)
        self.assertRegex(reply["choices"][0]["text"], r"^\d{4}$")
        self.assertEqual(reply["choices"][0]["finish_reason"], "stop")

    def test_free_text_between_tags_keeps_its_calls_valid(self):
        tag = {"type": "structural_tag", "format": {"type": "sequence", "elements": [
            {"type": "const_string", "value": "<call>"},
            {"type": "json_schema", "json_schema": {"type": "object", "properties": {
                "city": {"type": "string", "maxLength": 10}}, "required": ["city"]}},
            {"type": "const_string", "value": "</call>"}]}}
        choice = self.answer(response_format=tag, temperature=1, seed=3, max_tokens=80)
        inner = re.fullmatch(r"<call>(.*)</call>", choice["message"]["content"], re.DOTALL)
        self.assertIsInstance(json.loads(inner[1])["city"], str)

    def test_the_openai_package_parses_what_it_gets(self):
        done = self.client.chat.completions.parse(
            model=MODEL, messages=[{"role": "user", "content": "Tell me of a city."}],
            response_format=City, temperature=1, seed=4, max_tokens=400)
        message = done.choices[0].message
        if done.choices[0].finish_reason == "stop":
            self.assertIsInstance(message.parsed, City)

    def test_a_stream_is_the_same_answer(self):
        asked = {"response_format": schema_format(PERSON), "temperature": 1, "seed": 8,
                 "max_tokens": 200}
        whole = self.answer(**asked)["message"]["content"]
        events = self.server.stream("/v1/chat/completions", {
            "messages": [{"role": "user", "content": "Describe someone."}]} | asked)
        deltas = [event["choices"][0]["delta"].get("content") or "" for event in events]
        self.assertEqual("".join(deltas), whole)

    def test_choices_of_one_request_have_a_form_each(self):
        reply = self.chat(response_format=schema_format(PERSON), temperature=1, seed=2, n=3,
                          max_tokens=200)
        choices = reply.json()["choices"]
        for choice in choices:
            self.assert_valid(PERSON, choice)
        self.assertGreater(len({choice["message"]["content"] for choice in choices}), 1)

    def test_an_answer_that_is_cut_says_so(self):
        choice = self.answer(response_format=schema_format(PERSON), max_tokens=3)
        self.assertEqual(choice["finish_reason"], "length")

    def test_a_complete_answer_ends_whatever_the_request_says(self):
        for fields in ({"ignore_eos": True}, {"min_tokens": 30}):
            choice = self.answer(structured_outputs={"choice": ["yes", "no"]}, max_tokens=40, **fields)
            self.assertIn(choice["message"]["content"], ("yes", "no"))
            self.assertEqual(choice["finish_reason"], "stop")
        # As long as the grammar has more, they hold.
        choice = self.answer(structured_outputs={"regex": "a+"}, max_tokens=20, min_tokens=10)
        self.assertGreaterEqual(len(choice["message"]["content"]), 9)

    def test_log_probabilities_are_finite_and_the_models_own(self):
        reply = self.chat(response_format=schema_format({"enum": ["zebra"]}), logprobs=True,
                          top_logprobs=20, temperature=0)
        choice = json.loads(reply.body, parse_constant=self.fail)["choices"][0]
        self.assertEqual(choice["message"]["content"], '"zebra"')
        sure = [token["logprob"] for token in choice["logprobs"]["content"]]
        self.assertLess(min(sure), -1)  # not what the model would have said
        for token in choice["logprobs"]["content"]:
            self.assertEqual(len(token["top_logprobs"]), 20)

    def test_what_cannot_be_met_is_refused_at_once_by_name(self):
        cases = [
            ({"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True}}},
             "properties.a.uniqueItems"),
            ({"not": {}}, "not"), ({"$ref": "#"}, None),
            ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
             None),
            ({"type": "integer", "minimum": 2 ** 70}, "minimum"),
            ({"type": "integer", "minimum": 5, "maximum": 4}, None),
            ({"type": "string", "pattern": "(" * 50000}, "pattern")]
        for schema, place in cases:
            with self.subTest(schema=str(schema)[:80]):
                error = self.refusal(response_format=schema_format(schema))
                prefix = "response_format.json_schema.schema"
                self.assertEqual(error["param"], f"{prefix}.{place}" if place else prefix)
                self.assertLess(len(error["message"]), 2000)
        deep = {}
        for _ in range(200):
            deep = {"type": "array", "items": deep}
        self.assertIn("deep", self.refusal(response_format=schema_format(deep))["message"])
        self.assertEqual(self.refusal(guided_regex="(a*)*")["param"], "guided_regex")
        self.assertEqual(self.refusal(guided_choice=["a", 1])["param"], "guided_choice[1]")
        self.refusal(guided_choice=["a"], guided_regex="a")
        self.refusal(structured_outputs={})
        self.refusal(response_format={"type": "yaml"})
        self.refusal(response_format={"type": "json_schema", "json_schema": {"schema": {}}})

    def test_a_client_that_leaves_while_it_waits_leaves_nothing(self):
        for _ in range(4):
            self.server.open_stream({"messages": [{"role": "user", "content": "x"}],
                                     "response_format": schema_format(PERSON)}).close()
        self.server.wait_idle(10)


def story_requests():
    """With and without grammars, of common and own beginnings."""
    story = "The keeper of the lighthouse wrote a report every evening. "
    free = {"ignore_eos": True, "max_tokens": 24}
    return [
        {"prompt": story * 4, "temperature": 1, "seed": 1, "max_tokens": 60,
         "response_format": schema_format(PERSON)},
        {"prompt": story * 4, "temperature": 0, "max_tokens": 40,
         "response_format": schema_format(PERSON)},
        {"prompt": story * 4 + "Then", "temperature": 1, "seed": 2} | free,
        {"prompt": "A number:", "temperature": 1, "seed": 3, "guided_regex": "[0-9]{10,30}",
         "max_tokens": 40},
        {"prompt": story * 3, "temperature": 1, "seed": 4, "max_tokens": 40,
         "frequency_penalty": 0.5, "response_format": {"type": "json_object"}},
        {"prompt": "Once", "temperature": 1, "seed": 5} | free,
    ]


def ask(server, request):
    choice = server.complete(**request, logprobs=2)["choices"][0]
    return {"text": choice["text"], "finish": choice["finish_reason"]} | choice["logprobs"]


def together(server, requests):
    answers = [None] * len(requests)

    def one(i):
        answers[i] = ask(server, requests[i])
    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


class SameStructuredTokensTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = shared_server()
        cls.requests = story_requests()
        cls.alone = [ask(server, request | {"cache_salt": f"alone {i}"})
                     for i, request in enumerate(cls.requests)]
        cls.warm = [ask(server, request) for request in cls.requests]
        cls.beside = together(server, cls.requests)

    def test_cache_and_batch_change_nothing(self):
        self.assertEqual(self.warm, self.alone)
        self.assertEqual(self.beside, self.alone)

    def test_preemption_changes_nothing(self):
        with Server("--kv-blocks", 12) as server:
            self.assertEqual(together(server, self.requests), self.alone)
            self.assertGreater(server.metric("vllm:num_preemptions_total"), 0)
            server.wait_idle()

    def test_a_cluster_changes_nothing(self):
        with Cluster() as cluster:
            self.assertEqual(together(cluster.routers[0], self.requests), self.alone)


if __name__ == "__main__":
    unittest.main()
