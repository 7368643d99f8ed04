"""The real anthropic package drives /v1/messages."""

import unittest

import anthropic
from server import MODEL, openai_client, shared_server

# A field of Anthropic's API that the newest packages no longer have.
GREEDY = {"temperature": 0}
QUESTION = [{"role": "user", "content": "What is the capital of France?"}]


class MessagesApiTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.client = anthropic.Anthropic(base_url=f"http://127.0.0.1:{self.server.port}",
                                          api_key="none", timeout=60, max_retries=0)

    def create(self, messages=None, **fields):
        fields = {"model": MODEL, "max_tokens": 24, "extra_body": GREEDY} | fields
        return self.client.messages.create(messages=messages or QUESTION, **fields)

    def refused(self, text, status=400, **fields):
        body = {"model": MODEL, "max_tokens": 4, "messages": QUESTION} | fields
        reply = self.server.post("/v1/messages", body)
        self.assertEqual(reply.status, status, reply.body[:300])
        error = reply.json()
        self.assertEqual(error["type"], "error")
        self.assertIn(text, error["error"]["message"])
        return error["error"]["type"]

    def test_an_answer_is_that_of_the_chat(self):
        answer = self.create(system="You are a helpful AI assistant.")
        chat = openai_client(self.server).chat.completions.create(
            model=MODEL, temperature=0, max_tokens=24,
            messages=[{"role": "system", "content": "You are a helpful AI assistant."}, *QUESTION])
        self.assertEqual(answer.content[0].text, chat.choices[0].message.content)
        self.assertIn("Paris", answer.content[0].text)
        self.assertEqual((answer.type, answer.role, answer.stop_reason, answer.stop_sequence),
                         ("message", "assistant", "end_turn", None))
        usage = answer.usage
        self.assertEqual(usage.input_tokens + usage.cache_read_input_tokens,
                         chat.usage.prompt_tokens)
        self.assertEqual(usage.output_tokens, chat.usage.completion_tokens)

    def test_a_stream_gives_the_same_message(self):
        whole = self.create()
        with self.client.messages.stream(model=MODEL, extra_body=GREEDY, max_tokens=24,
                                         messages=QUESTION) as stream:
            text = "".join(stream.text_stream)
            final = stream.get_final_message()
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.stop_reason, whole.stop_reason)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)

    def test_the_events_come_in_anthropics_order(self):
        kinds = [event.type for event in self.create(stream=True)]
        self.assertEqual(kinds[:2], ["message_start", "content_block_start"])
        self.assertEqual(kinds[-3:], ["content_block_stop", "message_delta", "message_stop"])
        self.assertEqual(set(kinds[2:-3]), {"content_block_delta"})

    def test_ends_have_anthropics_names(self):
        self.assertEqual(self.create(max_tokens=2).stop_reason, "max_tokens")
        text = self.create().content[0].text
        stop = text.split()[2]
        stopped = self.create(stop_sequences=[stop])
        self.assertEqual((stopped.stop_reason, stopped.stop_sequence), ("stop_sequence", stop))
        self.assertEqual(stopped.content[0].text, text[:text.index(stop)])

    def test_blocks_are_joined_and_a_last_assistant_message_is_continued(self):
        blocks = [{"role": "user", "content": [{"type": "text", "text": QUESTION[0]["content"]}]}]
        self.assertEqual(self.create(blocks).content[0].text, self.create().content[0].text)
        begun = self.create([*QUESTION, {"role": "assistant", "content": "The capital is called"}])
        self.assertIn("Paris", begun.content[0].text)
        self.assertFalse(begun.content[0].text.startswith("The capital"))

    def test_tokens_are_counted_as_they_will_be(self):
        counted = self.client.messages.count_tokens(model=MODEL, messages=QUESTION,
                                                    system="Be brief.")
        usage = self.create(system="Be brief.", max_tokens=1).usage
        self.assertEqual(counted.input_tokens, usage.input_tokens + usage.cache_read_input_tokens)

    def test_the_package_raises_its_own_errors(self):
        with self.assertRaises(anthropic.NotFoundError):
            self.create(model="other")
        with self.assertRaises(anthropic.BadRequestError) as caught:
            self.create(extra_body={"temperature": 7})
        self.assertIn("temperature", str(caught.exception))
        self.assertTrue(caught.exception.request_id)

    def test_what_is_wrong_is_named_as_the_client_wrote_it(self):
        self.assertEqual(self.refused("max_tokens", max_tokens=0), "invalid_request_error")
        self.refused("stop_sequences", stop_sequences=["a"] * 5)
        self.refused("messages[0].content[0].type",
                     messages=[{"role": "user", "content": [
                         {"type": "image", "source": {"type": "url", "url": "x"}}]}])
        self.refused("messages[0].role", messages=[{"role": "system", "content": "a"}])
        self.refused("thinking", thinking={"type": "enabled", "budget_tokens": 1024})
        self.refused("mcp_servers", mcp_servers=[{"url": "x"}])
        self.refused("tools[0].type", tools=[{"type": "web_search_20250305", "name": "web"}])
        self.refused("did you mean", max_tokns=5)
        self.assertEqual(self.refused("other", 404, model="other"), "not_found_error")
        reply = self.server.get("/v1/messages")
        self.assertEqual((reply.status, reply.json()["type"]), (405, "error"))
        missing = self.server.post("/v1/messages", {"model": MODEL, "messages": QUESTION})
        self.assertIn("max_tokens is missing", missing.json()["error"]["message"])

    def test_who_leaves_a_stream_leaves_nothing_behind(self):
        connection = self.server.open_stream(
            {"max_tokens": 2000, "messages": [{"role": "user", "content": "Tell me a story."}]},
            path="/v1/messages")
        received = b""
        while b"text_delta" not in received:
            received += connection.recv(4096)
        connection.close()
        self.server.wait_idle(10)


if __name__ == "__main__":
    unittest.main()
