"""Answers drawn at random from grammars' masks are what was demanded, by the judgement of others:
`jsonschema` for schemas, `re` for expressions, and llguidance, another engine for structured output,
for both. Random tokens find what a model never tries."""

import datetime
import json
import re
import subprocess
import unittest

import jsonschema
import llguidance

from server import BUILD, MODEL_FILE

JSON_OBJECT, JSON_SCHEMA, REGEX, CHOICE, EBNF = 1, 2, 3, 4, 5
DRAWS = 12

PERSON = {
    "type": "object", "required": ["name", "age", "kind"], "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "mail": {"type": "string", "format": "email"},
        "kind": {"enum": ["friend", "colleague", 3, None]},
        "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}}}

SCHEMAS = [
    True, {}, {"type": "object"}, {"type": "array"}, {"type": "string"}, {"type": "number"},
    {"type": "integer"}, {"type": "boolean"}, {"type": "null"}, PERSON,
    {"type": ["string", "null", "integer"]},
    {"type": "string", "minLength": 3, "maxLength": 5},
    {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$"}, {"type": "string", "pattern": "\"[\\\\/]\""},
    {"pattern": "^(a|é|🦦)+$"}, {"type": "string", "pattern": "^[^a-z]{3}$"},
    {"type": "integer", "minimum": -7, "maximum": 12345},
    {"type": "integer", "minimum": 0, "maximum": 9000000000},
    {"type": "integer", "minimum": -9223372036854775808, "maximum": -9223372036854775000},
    {"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 11},
    {"type": "integer", "minimum": 1e3}, {"type": "integer", "maximum": -0.5},
    {"type": "integer", "multipleOf": 7},
    {"type": "integer", "multipleOf": 25, "minimum": -60, "maximum": 200},
    {"type": "number", "minimum": 0}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {"type": "number", "minimum": -3.25, "maximum": 0.001},
    {"type": "number", "minimum": 0.1, "exclusiveMaximum": 0.100002},
    {"type": "number", "minimum": -12345.678, "maximum": -0.5},
    {"type": "number", "exclusiveMinimum": 1e12},
    {"enum": ["a\"b", "é", 1.5, -0.0, {"x": [1, {}]}, False]}, {"const": "a\nb"},
    {"enum": [1, "1", None], "type": ["string", "null"]},
    {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "integer", "minimum": 5}]},
    {"oneOf": [{"type": "string"}, {"type": "number"}]},
    {"oneOf": [{"type": "object", "properties": {"k": {"const": k}, "v": {"type": t}},
                "required": ["k", "v"]} for k, t in (("a", "integer"), ("b", "string"))]},
    {"allOf": [{"$ref": "#/$defs/t"}], "$defs": {"t": {"type": "array", "maxItems": 1}}},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4},
    {"type": "array", "maxItems": 0}, {"type": "array", "minItems": 2, "items": {"type": "null"}},
    {"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    {"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 3}, "minItems": 1,
     "maxItems": 4},
    {"type": "object", "additionalProperties": {"type": "integer"}},
    {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2,
     "minProperties": 1},
    {"properties": {"a": {"type": "integer"}, "ab": {"type": "null"}, "b\"": {}},
     "additionalProperties": {"type": "string"}},
    {"properties": {c: {"const": i} for i, c in enumerate("abcdef")}, "required": ["c", "e"]},
    {"properties": {"a": {"type": "null"}}, "required": ["z", "a"]},
    {"properties": {"a": {}, "b": {}}, "required": ["a"], "maxProperties": 1},
    {"$ref": "#/$defs/list", "$defs": {"list": {
        "type": "object", "properties": {"v": {"type": "integer"}, "next": {
            "anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}}, "required": ["v", "next"]}}},
    {"properties": {"größe": {"type": "integer"}, "": {"type": "null"}}, "required": ["größe"],
     "additionalProperties": False},
]
FORMATS = ["date", "time", "date-time", "duration", "uuid", "ipv4", "ipv6", "hostname", "email", "uri"]
REGEXES = [r"\d{3}-\d{4}", r"(a|b)*c?", r"[^x]{2,4}", r"(\+\d{1,3} )?\w+\s\S", r".{0,9}", r"é+🦦",
           r"([a-z]+,)*[a-z]+", r"\x41\u{1F9A6}\t\.", r"((ab)?c){2}"]


class GrammarDrawsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen(
            [BUILD / "tests" / "draw_from_grammars", MODEL_FILE], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, encoding="utf-8")
        cls.oracle = llguidance.LLTokenizer("byte")

    @classmethod
    def tearDownClass(cls):
        cls.process.stdin.close()
        cls.process.wait(timeout=30)
        cls.process.stdout.close()

    def draw(self, kind, text, draws=DRAWS):
        """The texts that came to their end."""
        self.process.stdin.write(json.dumps({"kind": kind, "text": text, "draws": draws}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        self.assertNotIn("error", answer)
        for drawn in answer["draws"]:
            self.assertEqual(drawn["error"], "", drawn)
            self.assertNotIn("�", drawn["text"] if drawn["ended"] else "")
        return [drawn["text"] for drawn in answer["draws"] if drawn["ended"]]

    def oracle_accepts(self, grammar, text):
        matcher = llguidance.LLMatcher(self.oracle, grammar)
        self.assertFalse(matcher.is_error(), matcher.get_error())
        tokens = self.oracle.tokenize_str(text)
        self.assertEqual(matcher.try_consume_tokens(tokens), len(tokens), text)
        self.assertTrue(matcher.is_accepting(), text)

    def test_draws_from_schemas_are_valid(self):
        ended = 0
        for schema in SCHEMAS:
            validator = jsonschema.Draft202012Validator(schema)
            for text in self.draw(JSON_SCHEMA, json.dumps(schema)):
                with self.subTest(schema=schema, text=text):
                    ended += 1
                    value = json.loads(text, parse_constant=self.fail)
                    errors = [error.message for error in validator.iter_errors(value)]
                    self.assertEqual(errors, [])
        # Not each comes to an end in time, most do.
        self.assertGreater(ended, len(SCHEMAS) * DRAWS * 0.7)

    def test_formats_are_those_of_their_standards(self):
        # What jsonschema itself checks only with more packages.
        checker = jsonschema.FormatChecker()
        checker.checks("time", ValueError)(datetime.time.fromisoformat)
        checker.checks("date-time", ValueError)(datetime.datetime.fromisoformat)
        for name in FORMATS:
            schema = {"type": "string", "format": name}
            validator = jsonschema.Draft202012Validator(schema, format_checker=checker)
            texts = self.draw(JSON_SCHEMA, json.dumps(schema), 20)
            self.assertTrue(texts, name)
            for text in texts:
                with self.subTest(format=name, text=text):
                    self.assertEqual([e.message for e in validator.iter_errors(json.loads(text))], [])

    def test_another_engine_accepts_what_is_drawn_from_schemas(self):
        for schema in SCHEMAS:
            if not isinstance(schema, dict) or "oneOf" in schema or "multipleOf" in schema:
                continue  # it has no such thing, or another reading of it
            if schema.get("type") == "number" or -0.0 in schema.get("enum", ()):
                continue  # it spells a number between bounds, or a constant, in one way only
            schema = schema | {"x-guidance": {"whitespace_flexible": True}}
            grammar = llguidance.LLMatcher.grammar_from_json_schema(schema)
            if llguidance.LLMatcher.validate_grammar(grammar):
                continue
            for text in self.draw(JSON_SCHEMA, json.dumps(schema), 4):
                with self.subTest(schema=schema, text=text):
                    self.oracle_accepts(grammar, text)

    def test_draws_from_expressions_match_as_a_whole(self):
        for pattern in REGEXES:
            grammar = llguidance.LLMatcher.grammar_from_regex(pattern)
            texts = self.draw(REGEX, pattern)
            self.assertTrue(texts, pattern)
            for text in texts:
                with self.subTest(pattern=pattern, text=text):
                    python = re.sub(r"\\u\{(\w+)\}", lambda m: chr(int(m[1], 16)), pattern)
                    self.assertTrue(re.fullmatch(python, text))
                    if not llguidance.LLMatcher.validate_grammar(grammar):
                        self.oracle_accepts(grammar, text)

    def test_draws_from_choices_are_among_them(self):
        choices = ["yes", "no", "ye", "né 🦦", "a\"b\\c\n", "yes, sir"]
        found = set(self.draw(CHOICE, json.dumps(choices), 60))
        self.assertEqual(found - set(choices), set())
        self.assertGreater(len(found), 3)

    def test_draws_from_a_clients_grammar_follow_it(self):
        grammar = ("root ::= sum\nsum ::= product (\" + \" product)*\n"
                   "product ::= value (\"*\" value)*\nvalue ::= [1-9] [0-9]{0,3} | \"(\" sum \")\"\n")
        texts = self.draw(EBNF, grammar, 30)
        self.assertGreater(len(texts), 10)
        for text in texts:
            self.assertRegex(text, r"^[0-9+*() ]+$")
            self.assertIsInstance(eval(text), int)  # only digits, signs and parentheses

    def test_draws_of_any_object_are_objects(self):
        for text in self.draw(JSON_OBJECT, "", 30):
            self.assertIsInstance(json.loads(text), dict)


if __name__ == "__main__":
    unittest.main()
