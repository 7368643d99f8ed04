"""The real openai package drives /v1/responses."""

import json
import unittest

import openai
from server import MODEL, openai_client, shared_server

QUESTION = "What is the capital of France?"


class ResponsesApiTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.client = openai_client(self.server)

    def create(self, value=QUESTION, **fields):
        fields = {"model": MODEL, "temperature": 0, "max_output_tokens": 24} | fields
        return self.client.responses.create(input=value, **fields)

    def refused(self, param, code="invalid_value", status=400, **fields):
        reply = self.server.post("/v1/responses", {"model": MODEL, "input": "hi"} | fields)
        self.assertEqual(reply.status, status, reply.body[:300])
        error = reply.json()["error"]
        self.assertEqual((error["param"], error["code"]), (param, code), error)
        return error["message"]

    def test_an_answer_is_that_of_the_chat(self):
        answer = self.create()
        chat = self.client.chat.completions.create(
            model=MODEL, temperature=0, max_tokens=24,
            messages=[{"role": "user", "content": QUESTION}])
        self.assertEqual(answer.output_text, chat.choices[0].message.content)
        self.assertIn("Paris", answer.output_text)
        self.assertEqual(answer.status, "completed")
        self.assertEqual(answer.object, "response")
        self.assertTrue(answer.id.startswith("resp_"))
        self.assertEqual(answer.output[0].role, "assistant")
        self.assertEqual(answer.usage.input_tokens, chat.usage.prompt_tokens)
        self.assertEqual(answer.usage.output_tokens, chat.usage.completion_tokens)
        self.assertEqual(answer.max_output_tokens, 24)

    def test_a_cut_answer_is_incomplete(self):
        answer = self.create(max_output_tokens=3)
        self.assertEqual(answer.status, "incomplete")
        self.assertEqual(answer.incomplete_details.reason, "max_output_tokens")
        self.assertEqual(answer.output[0].status, "incomplete")

    def test_a_stream_has_every_event_in_its_order(self):
        whole = self.create()
        events = list(self.create(stream=True))
        self.assertEqual([event.sequence_number for event in events], list(range(len(events))))
        kinds = [event.type for event in events]
        self.assertEqual(kinds[:4], ["response.created", "response.in_progress",
                                     "response.output_item.added", "response.content_part.added"])
        self.assertEqual(kinds[-4:], ["response.output_text.done", "response.content_part.done",
                                      "response.output_item.done", "response.completed"])
        self.assertEqual(set(kinds[4:-4]), {"response.output_text.delta"})
        text = "".join(event.delta for event in events[4:-4])
        self.assertEqual(text, whole.output_text)
        self.assertEqual(events[-1].response.output_text, text)
        self.assertEqual(events[-4].text, text)
        self.assertEqual(events[-1].response.usage, whole.usage)

    def test_the_packages_stream_helper_understands_it(self):
        with self.client.responses.stream(model=MODEL, input=QUESTION, temperature=0,
                                          max_output_tokens=24) as stream:
            text = "".join(event.delta for event in stream
                           if event.type == "response.output_text.delta")
            self.assertEqual(stream.get_final_response().output_text, text)

    def test_log_probabilities_come_with_the_text(self):
        answer = self.create(include=["message.output_text.logprobs"], top_logprobs=2)
        logprobs = answer.output[0].content[0].logprobs
        self.assertEqual(len(logprobs), answer.usage.output_tokens)
        self.assertTrue(answer.output_text.startswith(logprobs[0].token))
        self.assertEqual(len(logprobs[0].top_logprobs), 2)

    def test_a_conversation_goes_on_by_the_id_of_its_last_response(self):
        first = self.create("What colour is my car? It is purple.", max_output_tokens=20,
                            instructions="Answer in one short sentence.")
        second = self.create("What colour is my car?", previous_response_id=first.id)
        self.assertEqual(second.previous_response_id, first.id)
        # The same as with all turns in the input; instructions are not carried over.
        whole = self.create([{"role": "user", "content": "What colour is my car? It is purple."},
                             *[item.model_dump() for item in first.output],
                             {"role": "user", "content": "What colour is my car?"}])
        self.assertEqual(second.output_text, whole.output_text)
        self.assertEqual(second.usage.input_tokens, whole.usage.input_tokens)

    def test_stored_responses_are_got_listed_and_deleted(self):
        first = self.create(metadata={"key": "value"})
        stored = self.client.responses.retrieve(first.id)
        self.assertEqual(stored.output_text, first.output_text)
        self.assertEqual(stored.metadata, {"key": "value"})
        items = self.client.responses.input_items.list(first.id).data
        self.assertEqual(items[0].content[0].text, QUESTION)
        self.client.responses.delete(first.id)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(first.id)
        message = self.refused("previous_response_id", "previous_response_not_found", 404,
                               previous_response_id=first.id)
        self.assertIn("is not stored here", message)

    def test_what_shall_not_be_stored_is_not(self):
        answer = self.create(store=False)
        with self.assertRaises(openai.NotFoundError):
            self.client.responses.retrieve(answer.id)
        self.assertFalse(answer.store)

    def test_calls_and_their_outputs_become_the_conversation(self):
        items = [{"role": "user", "content": "What is the weather in Paris?"},
                 {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "xyz"},
                 {"type": "function_call", "call_id": "c1", "name": "weather",
                  "arguments": json.dumps({"city": "Paris"})},
                 {"type": "function_call_output", "call_id": "c1", "output": "sunny"}]
        reply = self.server.post("/v1/responses", {"model": MODEL, "input": items,
                                                   "max_output_tokens": 4})
        # The shipped model's template may drop calls; then the refusal names the item.
        if reply.status != 200:
            self.assertRegex(reply.json()["error"]["param"], r"^input")

    def test_what_is_wrong_is_named_as_the_client_wrote_it(self):
        self.refused("input", input=[])
        self.refused("input[0].content[0].type", "unsupported_parameter",
                     input=[{"role": "user", "content": [{"type": "input_image",
                                                          "image_url": "data:,"}]}])
        self.refused("input[1].type", "unsupported_parameter",
                     input=[{"role": "user", "content": "a"}, {"type": "web_search_call"}])
        self.refused("max_output_tokens", max_output_tokens=0)
        self.refused("max_output_tokens", "context_length_exceeded", max_output_tokens=100000)
        self.refused("input[0].role", input=[{"role": "robot", "content": "a"}])
        self.refused("tools[0].type", "unsupported_parameter", tools=[{"type": "web_search"}])
        for field, value in (("background", True), ("conversation", "conv_1"),
                             ("truncation", "auto"), ("prompt", {"id": "p"}),
                             ("max_tool_calls", 2)):
            with self.subTest(field):
                self.refused(field, "unsupported_parameter", **{field: value})
        self.refused("temperature", temperature=3)
        self.assertIn("input", self.refused("messages", "unsupported_parameter",
                                            messages=[{"role": "user", "content": "a"}]) + "input")

    def test_who_leaves_a_stream_leaves_nothing_behind(self):
        connection = self.server.open_stream({"input": "Tell me a long story."},
                                             path="/v1/responses")
        received = b""
        while b"output_text.delta" not in received:
            received += connection.recv(4096)
        connection.close()
        self.server.wait_idle(10)


if __name__ == "__main__":
    unittest.main()
