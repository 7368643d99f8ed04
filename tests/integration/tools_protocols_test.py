"""Tools through /v1/responses and /v1/messages, by the official packages, from the offer to the
answer that follows the result."""

import json
import unittest

import anthropic
import jsonschema
import openai
from pydantic import BaseModel, Field
from server import MODEL, openai_client, shared_server
from tools_api_test import SCHEMAS

QUESTION = "What is the weather in Paris tomorrow?"
RESULT = "It rains."


def description(name):
    return f"The function {name}."


class Protocol(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.openai = openai_client(self.server)

    def check_arguments(self, name, arguments):
        self.assertIn(name, SCHEMAS)
        jsonschema.validate(arguments, SCHEMAS[name])

    def chat_calls(self, tool_choice, **fields):
        """What a chat answers to the same: [[name, arguments], ...]."""
        tools = [{"type": "function", "function": {
            "name": name, "description": description(name), "parameters": schema}}
            for name, schema in SCHEMAS.items()]
        choice = self.openai.chat.completions.create(
            model=MODEL, temperature=0, max_tokens=120, tools=tools, tool_choice=tool_choice,
            messages=[{"role": "user", "content": QUESTION}], **fields).choices[0]
        return [[call.function.name, call.function.arguments]
                for call in choice.message.tool_calls or []]

    def chat_prompt_tokens(self, calls, results):
        """Of the conversation with these calls and their results."""
        tools = [{"type": "function", "function": {
            "name": name, "description": description(name), "parameters": schema}}
            for name, schema in SCHEMAS.items()]
        messages = [{"role": "user", "content": QUESTION},
                    {"role": "assistant", "content": None, "tool_calls": [
                        {"id": id, "type": "function",
                         "function": {"name": name, "arguments": arguments}}
                        for id, name, arguments in calls]},
                    *({"role": "tool", "tool_call_id": id, "content": result}
                      for (id, _, _), result in zip(calls, results))]
        return self.openai.chat.completions.create(
            model=MODEL, temperature=0, max_tokens=1, tools=tools,
            messages=messages).usage.prompt_tokens


class ResponsesToolsTest(Protocol):
    TOOLS = [{"type": "function", "name": name, "description": description(name),
              "parameters": schema, "strict": False} for name, schema in SCHEMAS.items()]

    def create(self, value=QUESTION, **fields):
        fields = {"model": MODEL, "temperature": 0, "max_output_tokens": 120,
                  "tools": self.TOOLS} | fields
        return self.openai.responses.create(input=value, **fields)

    def test_required_and_named_calls_are_valid_and_those_of_the_chat(self):
        for choice, of_chat in (("required", "required"),
                                ({"type": "function", "name": "order"},
                                 {"type": "function", "function": {"name": "order"}})):
            with self.subTest(choice):
                answer = self.create(tool_choice=choice, parallel_tool_calls=False)
                self.assertEqual([item.type for item in answer.output], ["function_call"])
                call = answer.output[0]
                self.check_arguments(call.name, json.loads(call.arguments))
                self.assertEqual([[call.name, call.arguments]],
                                 self.chat_calls(of_chat, parallel_tool_calls=False))
                self.assertEqual((answer.status, call.status), ("completed", "completed"))
                self.assertTrue(call.call_id.startswith("call_") and call.id.startswith("fc_"))
        for seed in range(4):
            answer = self.create(tool_choice="required", temperature=1, extra_body={"seed": seed},
                                 parallel_tool_calls=False)
            for call in answer.output:
                if answer.status == "completed":
                    self.check_arguments(call.name, json.loads(call.arguments))

    def test_a_streamed_call_has_every_event_in_its_order(self):
        fields = {"tool_choice": "required", "parallel_tool_calls": False}
        whole = self.create(**fields)
        events = list(self.create(stream=True, **fields))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        kinds = [event.type for event in events]
        self.assertEqual(kinds[:3], ["response.created", "response.in_progress",
                                     "response.output_item.added"])
        self.assertEqual(kinds[-3:], ["response.function_call_arguments.done",
                                      "response.output_item.done", "response.completed"])
        self.assertEqual(set(kinds[3:-3]), {"response.function_call_arguments.delta"})
        added, done, item = events[2].item, events[-3], events[-2].item
        self.assertEqual((added.type, added.arguments, added.status),
                         ("function_call", "", "in_progress"))
        self.assertEqual({event.item_id for event in events[3:-2]}, {added.id})
        self.assertEqual({event.output_index for event in events[2:-1]}, {0})
        self.assertEqual("".join(event.delta for event in events[3:-3]), done.arguments)
        self.assertEqual((item.id, item.call_id, item.name),
                         (added.id, added.call_id, added.name))
        self.assertEqual((done.name, item.arguments), (item.name, done.arguments))
        self.assertEqual([(call.name, call.arguments) for call in events[-1].response.output],
                         [(call.name, call.arguments) for call in whole.output])

    def test_several_calls_follow_each_other_with_indices_of_their_own(self):
        events = list(self.create(stream=True, tool_choice="required", temperature=1,
                                  max_output_tokens=300, extra_body={"seed": 1}))
        response = events[-1].response
        open_item = None
        for event in events:
            if event.type == "response.output_item.added":
                self.assertIsNone(open_item)
                open_item = event.item.id
            elif event.type == "response.output_item.done":
                self.assertEqual(event.item.id, open_item)
                self.assertEqual(response.output[event.output_index], event.item)
                open_item = None
            elif event.type.startswith("response.function_call_arguments"):
                self.assertEqual(event.item_id, open_item)
        self.assertEqual(len({call.call_id for call in response.output}), len(response.output))
        for call in response.output[:-1]:
            self.check_arguments(call.name, json.loads(call.arguments))

    def test_the_packages_helper_parses_the_arguments(self):
        class Sum(BaseModel):
            """Adds two numbers."""
            a: int = Field(ge=0, le=99)
            b: int = Field(ge=0, le=99)
        with self.openai.responses.stream(
                model=MODEL, input="What is 2 + 3?", temperature=0, max_output_tokens=60,
                tools=[{"type": "function", "name": "Sum", "strict": True,
                        "description": "Adds two numbers.",
                        "parameters": Sum.model_json_schema() | {"additionalProperties": False}}],
                tool_choice={"type": "function", "name": "Sum"}) as stream:
            pieces = "".join(event.delta for event in stream
                             if event.type == "response.function_call_arguments.delta")
            call = stream.get_final_response().output[0]
        self.assertEqual(call.arguments, pieces)
        Sum.model_validate_json(call.arguments)

    def test_results_go_back_as_items_or_behind_the_stored_response(self):
        first = self.create(tool_choice={"type": "function", "name": "get_weather"})
        call = first.output[0]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        by_items = self.create([{"role": "user", "content": QUESTION},
                                *[item.model_dump() for item in first.output], result],
                               max_output_tokens=16)
        # As it is written out by clients that keep conversations as JSON.
        by_objects = self.create([{"role": "user", "content": QUESTION}, *first.output, result],
                                 max_output_tokens=16)
        self.assertEqual(by_objects.output_text, by_items.output_text)
        by_id = self.create([result], previous_response_id=first.id, max_output_tokens=16)
        self.assertEqual(by_id.output_text, by_items.output_text)
        self.assertEqual(by_id.usage.input_tokens, by_items.usage.input_tokens)
        self.assertEqual(by_items.usage.input_tokens, self.chat_prompt_tokens(
            [(item.call_id, item.name, item.arguments) for item in first.output], [RESULT]))

    def test_none_calls_nothing_and_unknown_tools_are_refused(self):
        answer = self.create(tool_choice="none", max_output_tokens=12)
        self.assertEqual([item.type for item in answer.output], ["message"])
        for fields in ({"tool_choice": {"type": "function", "name": "other"}},
                       {"tools": [], "tool_choice": "required"}):
            with self.assertRaises(openai.BadRequestError) as caught:
                self.create(**fields)
            self.assertTrue(caught.exception.param.startswith("tool_choice"))


class MessagesToolsTest(Protocol):
    TOOLS = [{"name": name, "description": description(name), "input_schema": schema}
             for name, schema in SCHEMAS.items()]

    def setUp(self):
        super().setUp()
        self.client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{self.server.port}",
                                          api_key="none", timeout=60, max_retries=0)

    def create(self, messages=None, body=None, **fields):
        fields = {"model": MODEL, "max_tokens": 120, "tools": self.TOOLS} | fields
        return self.client.messages.create(
            messages=messages or [{"role": "user", "content": QUESTION}],
            extra_body={"temperature": 0} | (body or {}), **fields)

    def test_any_and_named_calls_are_valid_and_those_of_the_chat(self):
        for choice, of_chat in (({"type": "any"}, "required"),
                                ({"type": "tool", "name": "order"},
                                 {"type": "function", "function": {"name": "order"}})):
            with self.subTest(choice):
                answer = self.create(tool_choice=choice | {"disable_parallel_tool_use": True})
                self.assertEqual([block.type for block in answer.content], ["tool_use"])
                call = answer.content[0]
                self.check_arguments(call.name, call.input)
                self.assertEqual(answer.stop_reason, "tool_use")
                chat = self.chat_calls(of_chat, parallel_tool_calls=False)
                self.assertEqual([[call.name, call.input]],
                                 [[name, json.loads(text)] for name, text in chat])

    def test_a_streamed_call_has_every_event_in_its_order(self):
        choice = {"type": "any", "disable_parallel_tool_use": True}
        whole = self.create(tool_choice=choice)
        events = list(self.create(tool_choice=choice, stream=True))
        kinds = [event.type for event in events]
        self.assertEqual(kinds[:2], ["message_start", "content_block_start"])
        self.assertEqual(kinds[-3:], ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual(set(kinds[2:-3]), {"content_block_delta"})
        start = events[1].content_block
        self.assertEqual((start.type, start.input, start.name),
                         ("tool_use", {}, whole.content[0].name))
        self.assertEqual({event.delta.type for event in events[2:-3]}, {"input_json_delta"})
        pieces = "".join(event.delta.partial_json for event in events[2:-3])
        self.assertEqual(json.loads(pieces), whole.content[0].input)
        self.assertEqual(events[-2].delta.stop_reason, "tool_use")
        self.assertEqual(events[-2].usage.output_tokens, whole.usage.output_tokens)

    def test_the_packages_helper_assembles_the_same_message(self):
        choice = {"type": "any"}
        whole = self.create(tool_choice=choice, max_tokens=300)
        with self.client.messages.stream(
                model=MODEL, max_tokens=300, tools=self.TOOLS, tool_choice=choice,
                extra_body={"temperature": 0},
                messages=[{"role": "user", "content": QUESTION}]) as stream:
            indices = [event.index for event in stream if event.type == "content_block_start"]
            final = stream.get_final_message()
        self.assertEqual(indices, list(range(len(final.content))))
        self.assertEqual([(block.name, block.input) for block in final.content[:-1]],
                         [(block.name, block.input) for block in whole.content[:-1]])
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(len({block.id for block in final.content}), len(final.content))

    def test_results_go_back_as_blocks(self):
        first = self.create(tool_choice={"type": "tool", "name": "get_weather",
                                         "disable_parallel_tool_use": True})
        call = first.content[0]
        forms = (RESULT, [{"type": "text", "text": RESULT}])
        answers = []
        for form in forms:
            messages = [{"role": "user", "content": QUESTION},
                        {"role": "assistant", "content": first.content},
                        {"role": "user", "content": [
                            {"type": "tool_result", "tool_use_id": call.id, "content": form}]}]
            answer = self.create(messages, max_tokens=16)
            counted = self.client.messages.count_tokens(model=MODEL, messages=messages,
                                                        tools=self.TOOLS)
            self.assertEqual(answer.usage.input_tokens + answer.usage.cache_read_input_tokens,
                             counted.input_tokens)
            answers.append(answer)
        self.assertEqual(answers[0].content, answers[1].content)
        self.assertEqual(counted.input_tokens, self.chat_prompt_tokens(
            [(call.id, call.name, json.dumps(call.input, separators=(",", ":")))], [RESULT]))

    def test_none_calls_nothing_and_unknown_tools_are_refused(self):
        answer = self.create(tool_choice={"type": "none"}, max_tokens=12)
        self.assertEqual([block.type for block in answer.content], ["text"])
        with self.assertRaises(anthropic.BadRequestError):
            self.create(tool_choice={"type": "tool", "name": "other"})
        with self.assertRaises(anthropic.BadRequestError):
            self.create(tools=[], tool_choice={"type": "any"})


if __name__ == "__main__":
    unittest.main()
