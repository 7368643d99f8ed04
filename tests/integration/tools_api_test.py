"""Tool calls and reasoning, as users see them, with the real model."""

import json
import tempfile
import unittest
from pathlib import Path

import jsonschema
import openai
from server import MODEL, Server, openai_client, shared_server

QUESTION = [{"role": "user", "content": "What is the weather in Paris tomorrow?"}]

# Bounded, so that a small model that rambles comes to an end.
SCHEMAS = {
    "get_weather": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12},
                       "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}},
        "required": ["city", "unit"], "additionalProperties": False},
    "add": {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 999},
                       "b": {"type": "integer", "minimum": 0, "maximum": 999}},
        "required": ["a", "b"], "additionalProperties": False},
    "order": {
        "type": "object",
        "properties": {
            "items": {"type": "array", "maxItems": 2, "items": {
                "type": "object",
                "properties": {"name": {"enum": ["tea", "a \"cake\" {1}", "</tool_call>"]},
                               "count": {"type": "integer", "minimum": 1, "maximum": 9}},
                "required": ["name", "count"], "additionalProperties": False}},
            "hurry": {"type": "boolean"}},
        "required": ["items", "hurry"], "additionalProperties": False},
    "now": {"type": "object", "properties": {}, "additionalProperties": False},
}


def tool(name, /, **function):
    return {"type": "function",
            "function": {"name": name, "description": f"The function {name}.",
                         "parameters": SCHEMAS[name]} | function}


TOOLS = [tool(name) for name in SCHEMAS]


def named(name):
    return {"type": "function", "function": {"name": name}}


def check_calls(test, choice):
    """Every call is of a declared tool, and its arguments follow the schema."""
    calls = choice.message.tool_calls
    test.assertTrue(calls)
    test.assertEqual(len({call.id for call in calls}), len(calls))
    for call in calls:
        test.assertEqual(call.type, "function")
        test.assertIn(call.function.name, SCHEMAS)
        jsonschema.validate(json.loads(call.function.arguments), SCHEMAS[call.function.name])
    return calls


def gather(stream):
    """The choices of a stream, as a client assembles them: text, reasoning, calls, reason."""
    choices = {}
    for chunk in stream:
        for choice in chunk.choices:
            one = choices.setdefault(choice.index, {"text": "", "reasoning": "", "calls": [],
                                                    "reason": None})
            delta = choice.delta
            one["text"] += delta.content or ""
            one["reasoning"] += getattr(delta, "reasoning_content", None) or ""
            for piece in delta.tool_calls or []:
                if piece.id:
                    assert piece.index == len(one["calls"]) and piece.type == "function"
                    one["calls"].append([piece.function.name, ""])
                one["calls"][piece.index][1] += piece.function.arguments
            one["reason"] = choice.finish_reason or one["reason"]
    return [choices[index] for index in sorted(choices)]


def as_gathered(choice):
    message = choice.message
    return {"text": message.content or "",
            "reasoning": getattr(message, "reasoning_content", None) or "",
            "calls": [[call.function.name, call.function.arguments]
                      for call in message.tool_calls or []],
            "reason": choice.finish_reason}


class ToolsTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.client = openai_client(self.server)

    def create(self, messages=None, **fields):
        fields = {"model": MODEL, "temperature": 0, "max_tokens": 120, "tools": TOOLS} | fields
        return self.client.chat.completions.create(messages=messages or QUESTION, **fields)

    def refused(self, **fields):
        with self.assertRaises(openai.BadRequestError) as caught:
            self.create(**fields)
        return caught.exception

    def test_required_calls_are_valid_whatever_the_seed(self):
        for seed in range(6):
            choice = self.create(tool_choice="required", parallel_tool_calls=False,
                                 temperature=1, seed=seed).choices[0]
            with self.subTest(seed=seed, message=choice.message):
                self.assertEqual(choice.finish_reason, "tool_calls")
                self.assertIsNone(choice.message.content)
                self.assertEqual(len(check_calls(self, choice)), 1)

    def test_a_named_tool_is_called_once_with_valid_arguments(self):
        for name in SCHEMAS:
            choice = self.create(tool_choice=named(name), temperature=1, seed=5).choices[0]
            with self.subTest(name=name, message=choice.message):
                self.assertEqual(choice.finish_reason, "tool_calls")
                calls = check_calls(self, choice)
                self.assertEqual([call.function.name for call in calls], [name])

    def test_several_calls_come_one_after_the_other(self):
        for seed in range(10):  # how many there are is the model's own affair
            choice = self.create(tools=[tool("add")], tool_choice="required", temperature=1,
                                 seed=seed, max_tokens=90).choices[0]
            if len(choice.message.tool_calls) > 1:
                break
        self.assertGreater(len(choice.message.tool_calls), 1)
        whole = choice.message.tool_calls
        if choice.finish_reason == "length":  # the last one may be cut
            whole = whole[:-1]
        for call in whole:
            jsonschema.validate(json.loads(call.function.arguments), SCHEMAS["add"])

    def test_a_stream_gives_the_same_calls_as_one_answer(self):
        for fields in ({"tool_choice": "required", "parallel_tool_calls": False},
                       {"tool_choice": named("order"), "n": 2},
                       {"tool_choice": "required", "max_tokens": 30},
                       {"tool_choice": "auto"}, {"tool_choice": "none"}):
            fields = {"temperature": 1, "seed": 11} | fields
            with self.subTest(fields):
                whole = [as_gathered(choice) for choice in self.create(**fields).choices]
                self.assertEqual(gather(self.create(stream=True, **fields)), whole)

    def test_a_cut_answer_says_length(self):
        for limit in (1, 3, 8, 16):
            for choice in ("required", named("get_weather")):
                answer = self.create(tool_choice=choice, max_tokens=limit).choices[0]
                with self.subTest(limit=limit, message=answer.message):
                    self.assertEqual(answer.finish_reason, "length")
                    self.assertNotIn("<", answer.message.content or "")

    def test_none_gives_no_call_and_does_not_show_the_tools(self):
        with_none = self.create(tool_choice="none")
        without = self.create(tools=openai.NOT_GIVEN)
        self.assertIsNone(with_none.choices[0].message.tool_calls)
        self.assertEqual(with_none.choices[0].finish_reason, without.choices[0].finish_reason)
        self.assertEqual(with_none.choices[0].message.content, without.choices[0].message.content)
        self.assertEqual(with_none.usage.prompt_tokens, without.usage.prompt_tokens)

    def test_auto_calls_validly_or_answers(self):
        for seed in range(4):
            choice = self.create(tools=[tool(name, strict=True) for name in SCHEMAS],
                                 temperature=1, seed=seed, max_tokens=60).choices[0]
            with self.subTest(seed=seed, message=choice.message):
                if choice.finish_reason == "tool_calls":
                    check_calls(self, choice)
                self.assertNotIn("<tool_call>", choice.message.content or "")

    def test_choices_that_cannot_be_met_are_refused(self):
        for fields, param in (
                ({"tool_choice": named("unknown")}, "tool_choice.function.name"),
                ({"tools": [], "tool_choice": "required"}, "tool_choice"),
                ({"tools": openai.NOT_GIVEN, "tool_choice": "required"}, "tool_choice"),
                ({"tool_choice": "sometimes"}, "tool_choice"),
                ({"tools": [tool("add"), tool("add")]}, "tools[1]"),
                ({"tools": [tool("add", name="a b")]}, "tools[0].function.name"),
                ({"extra_body": {"functions": [{"name": "f"}]}}, "functions")):
            with self.subTest(fields=fields):
                self.assertEqual(self.refused(**fields).param, param)

    def test_a_schema_that_cannot_be_enforced_is_refused_by_its_keyword(self):
        schema = {"type": "object", "properties": {"x": {"not": {"type": "string"}}}}
        odd = tool("add", parameters=schema)
        for fields in ({"tool_choice": "required"}, {"tools": [odd, tool("now")],
                                                     "tool_choice": named("add")}):
            error = self.refused(**({"tools": [odd]} | fields))
            self.assertTrue(error.param.startswith("tools[0].function.parameters"), error.param)
            self.assertIn("not", error.message)
        # It is no obstacle where it need not be enforced.
        self.create(tools=[odd], max_tokens=2)
        self.create(tools=[odd, tool("now")], tool_choice=named("now"), max_tokens=2)

    def test_calls_and_results_come_back_in_the_conversation(self):
        first = self.create(tool_choice=named("add"))
        call = first.choices[0].message.tool_calls[0]
        messages = QUESTION + [first.choices[0].message.to_dict(),
                               {"role": "tool", "tool_call_id": call.id, "content": "41.5"}]
        self.assertTrue(self.create(messages, max_tokens=8).choices[0])
        tokens = self.server.post("/tokenize", {"model": MODEL, "messages": messages}).json()
        prompt = self.server.post("/detokenize",
                                  {"model": MODEL, "tokens": tokens["tokens"]}).json()["prompt"]
        self.assertIn('"add"', prompt)
        self.assertIn("41.5", prompt)
        for word in ("None", "null"):
            self.assertNotIn(word, prompt)

    def test_the_seed_repeats_the_calls_but_not_their_ids(self):
        one, two = (self.create(tool_choice=named("order"), temperature=1, seed=3).choices[0]
                    for _ in range(2))
        self.assertEqual(as_gathered(one), as_gathered(two))
        self.assertNotEqual(one.message.tool_calls[0].id, two.message.tool_calls[0].id)


CHATML = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
          "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
FAMILIES = {
    "hermes": "{% if tools %}<|im_start|>system\nTools: {{ tools | tojson }} Call them by "
              "<tool_call>{...}</tool_call>.<|im_end|>\n{% endif %}" + CHATML,
    "llama3": "{% if tools %}<|im_start|>system\nRespond as {\"name\": function, \"parameters\": "
              "dictionary}. {{ tools | tojson }}<|im_end|>\n{% endif %}" + CHATML,
    "mistral": "{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }} [TOOL_CALLS]{% endif %}"
               + CHATML,
    "mistral-args": "{% if tools %}[AVAILABLE_TOOLS]{{ tools | tojson }} [TOOL_CALLS]f[ARGS]"
                    "{% endif %}" + CHATML,
}


class FamiliesTest(unittest.TestCase):
    """The forms of other families, by templates that want them."""

    def serve(self, template, *flags):
        file = Path(self.enterContext(tempfile.TemporaryDirectory())) / "template.jinja"
        file.write_text(template)
        server = self.enterContext(Server("--chat-template", file, *flags))
        return openai_client(server).chat.completions

    def test_each_form_gives_valid_calls_streamed_or_not(self):
        for family, template in FAMILIES.items():
            completions = self.serve(template)
            fields = {"model": MODEL, "messages": QUESTION, "tools": TOOLS, "max_tokens": 100,
                      "tool_choice": "required", "temperature": 1, "seed": 4,
                      "parallel_tool_calls": False}
            with self.subTest(family):
                whole = completions.create(**fields).choices[0]
                self.assertEqual(whole.finish_reason, "tool_calls", whole)
                calls = check_calls(self, whole)
                self.assertEqual(len(calls), 1)
                if family.startswith("mistral"):
                    self.assertRegex(calls[0].id, "^[A-Za-z0-9]{9}$")
                streamed = gather(completions.create(stream=True, **fields))
                self.assertEqual(streamed, [as_gathered(whole)])

    def test_reasoning_that_the_template_opens_is_split_off(self):
        completions = self.serve(CHATML + "{% if add_generation_prompt %}<think>\n{% endif %}")
        fields = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 24,
                  "stop": ["e"]}
        whole = completions.create(**fields)
        message = whole.choices[0].message
        # This model never closes what it does not know; so all is reasoning, with every stop string.
        self.assertIsNone(message.content)
        self.assertIn("e", message.reasoning_content)
        self.assertEqual(message.reasoning, message.reasoning_content)
        self.assertEqual(whole.choices[0].finish_reason, "length")
        self.assertEqual(whole.usage.completion_tokens_details.reasoning_tokens, 24)
        self.assertEqual(gather(completions.create(stream=True, **fields)),
                         [as_gathered(whole.choices[0])])
        asked = completions.create(extra_body={"stop_in_reasoning": True}, **fields).choices[0]
        self.assertEqual(asked.finish_reason, "stop")
        self.assertEqual(asked.message.reasoning_content,
                         message.reasoning_content.partition("e")[0].rstrip())

    def test_flags_overrule_the_template(self):
        completions = self.serve(CHATML + "<think>", "--tool-call-format", "none",
                                 "--reasoning-format", "none")
        fields = {"model": MODEL, "messages": QUESTION, "temperature": 0, "max_tokens": 4}
        self.assertTrue(completions.create(**fields).choices[0].message.content)
        with self.assertRaises(openai.BadRequestError) as caught:
            completions.create(tools=TOOLS, **fields)
        self.assertEqual(caught.exception.param, "tools")
        self.assertIn("--tool-call-format", caught.exception.message)


if __name__ == "__main__":
    unittest.main()
