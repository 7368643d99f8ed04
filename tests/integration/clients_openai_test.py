"""The openai package as its users have it: synchronous, asynchronous, streaming, retrying,
impatient; every answer goes through its typed models."""

import asyncio
import contextlib
import unittest

import openai
from server import MODEL, Server, openai_client, shared_server, wait_until

STORY = [{"role": "user", "content": "Tell me a story about a lighthouse."}]
CAPITAL = [{"role": "user", "content": "What is the capital of France?"}]
FIELDS = {"model": MODEL, "messages": STORY, "temperature": 0, "max_tokens": 16}
ENDLESS = FIELDS | {"max_tokens": 4000, "extra_body": {"ignore_eos": True}}


def joined(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@contextlib.asynccontextmanager
async def async_client(server, **options):
    async with openai.AsyncOpenAI(**({"base_url": f"http://127.0.0.1:{server.port}/v1",
                                      "api_key": "none", "timeout": 60, "max_retries": 0}
                                     | options)) as client:
        yield client


class OpenAiClientTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.client = openai_client(self.server)

    def text(self, **fields):
        return self.client.chat.completions.create(**FIELDS | fields).choices[0].message.content

    def assert_strict(self, answer):
        """The answer has every field that the client's types want, each of its type: the package
        itself does not look."""
        type(answer).model_validate(answer.model_dump(), strict=True)

    def test_answers_and_chunks_are_of_the_clients_types(self):
        self.assert_strict(self.client.chat.completions.create(**FIELDS, logprobs=True,
                                                               top_logprobs=2))
        chunks = list(self.client.chat.completions.create(
            **FIELDS, stream=True, logprobs=True, top_logprobs=1,
            stream_options={"include_usage": True}))
        for chunk in chunks:
            self.assert_strict(chunk)
        self.assertEqual(len({(c.id, c.created, c.model) for c in chunks}), 1)
        self.assert_strict(self.client.completions.create(
            model=MODEL, prompt="One, two,", max_tokens=4, logprobs=2))
        for chunk in self.client.completions.create(model=MODEL, prompt="One, two,", max_tokens=4,
                                                    stream=True):
            self.assertIn(chunk.choices[0].finish_reason, (None, "length", "stop"))
            if chunk.choices[0].finish_reason is not None:
                self.assert_strict(chunk)  # null is not in its type, but what OpenAI sends
        self.assert_strict(self.client.models.list().data[0])

    def test_the_stream_helper_assembles_the_same_completion(self):
        fields = FIELDS | {"messages": CAPITAL, "max_tokens": 40, "logprobs": True}
        with self.client.chat.completions.stream(**fields) as stream:
            deltas = [event.delta for event in stream if event.type == "content.delta"]
            final = stream.get_final_completion()
        whole = self.client.chat.completions.create(**fields)
        self.assertEqual("".join(deltas), whole.choices[0].message.content)
        self.assertEqual(final.choices[0].message.content, whole.choices[0].message.content)
        self.assertEqual(final.choices[0].finish_reason, whole.choices[0].finish_reason)
        self.assertEqual([t.logprob for t in final.choices[0].logprobs.content],
                         [t.logprob for t in whole.choices[0].logprobs.content])

    def test_a_stream_that_is_cut_by_the_limit_is_told_apart(self):
        with self.assertRaises(openai.LengthFinishReasonError), \
                self.client.chat.completions.stream(**FIELDS) as stream:
            stream.get_final_completion()

    def test_a_request_id_is_in_every_answer_and_error(self):
        raw = self.client.chat.completions.with_raw_response.create(**FIELDS)
        self.assertTrue(raw.headers["x-request-id"])
        own = self.client.chat.completions.with_raw_response.create(
            **FIELDS, extra_headers={"X-Request-Id": "mine-17"})
        self.assertEqual(own.headers["x-request-id"], "mine-17")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.chat.completions.create(**FIELDS | {"temperature": -1})
        self.assertTrue(caught.exception.request_id)

    def test_the_asynchronous_client_gives_the_same(self):
        expected = self.text()

        async def run():
            async with async_client(self.server) as client:
                whole = await client.chat.completions.create(**FIELDS)
                stream = await client.chat.completions.create(**FIELDS, stream=True)
                chunks = [chunk async for chunk in stream]
                completion = await client.completions.create(model=MODEL, prompt="1, 2,",
                                                             max_tokens=2)
                models = [model.id async for model in client.models.list()]
            return whole.choices[0].message.content, joined(chunks), completion, models
        whole, streamed, completion, models = asyncio.run(run())
        self.assertEqual((whole, streamed), (expected, expected))
        self.assertEqual(completion.usage.completion_tokens, 2)
        self.assertEqual(models, [MODEL])

    def test_many_tasks_over_one_client_each_get_their_own_answer(self):
        prompts = [f"Say the number {i}." for i in range(12)]
        alone = [self.text(messages=[{"role": "user", "content": p}]) for p in prompts]

        async def run():
            async with async_client(self.server) as client:
                async def ask(i, prompt):
                    fields = FIELDS | {"messages": [{"role": "user", "content": prompt}]}
                    if i % 2:
                        answer = await client.chat.completions.create(**fields)
                        return answer.choices[0].message.content
                    stream = await client.chat.completions.create(**fields, stream=True)
                    return joined([chunk async for chunk in stream])
                return await asyncio.gather(*(ask(i, p) for i, p in enumerate(prompts)))
        self.assertEqual(asyncio.run(run()), alone)

    def test_a_cancelled_task_ends_its_request(self):
        async def run():
            async with async_client(self.server) as client:
                for stream in (False, True):
                    async def ask(stream=stream):
                        answer = await client.chat.completions.create(**ENDLESS, stream=stream)
                        if stream:
                            async for _ in answer:
                                pass
                    task = asyncio.create_task(ask())
                    await asyncio.to_thread(
                        wait_until, lambda: self.server.metric("vllm:num_requests_running") == 1,
                        20, "it runs")
                    task.cancel()
                    with self.assertRaises(asyncio.CancelledError):
                        await task
                    await asyncio.to_thread(self.server.wait_idle, 4)
        asyncio.run(run())

    def test_an_impatient_client_frees_what_it_asked_for(self):
        hasty = self.client.with_options(timeout=0.5)
        with self.assertRaises(openai.APITimeoutError):
            hasty.chat.completions.create(**ENDLESS)
        self.server.wait_idle(4)

    def test_each_mistake_raises_its_own_exception(self):
        chat = self.client.chat.completions
        for error, code, fields in (
                (openai.BadRequestError, "invalid_value", {"temperature": 9}),
                (openai.BadRequestError, "context_length_exceeded", {"max_tokens": 10**6}),
                (openai.BadRequestError, "unsupported_parameter", {"web_search_options": {"a": 1}}),
                (openai.NotFoundError, "model_not_found", {"model": "gpt-9"})):
            for stream in (False, True):
                with self.subTest(code, stream=stream), self.assertRaises(error) as caught:
                    chat.create(**FIELDS | fields, stream=stream)
                self.assertEqual(caught.exception.code, code)
                self.assertEqual(caught.exception.param, next(iter(fields)))
                self.assertEqual(caught.exception.type, "invalid_request_error")


class OverloadTest(unittest.TestCase):
    def test_a_full_server_says_when_to_retry_and_retrying_succeeds(self):
        with Server("--max-requests", 2) as server:
            client = openai_client(server)
            held = [client.chat.completions.create(**ENDLESS, stream=True) for _ in range(2)]
            with self.assertRaises(openai.RateLimitError) as caught:
                client.chat.completions.create(**FIELDS)
            self.assertGreaterEqual(int(caught.exception.response.headers["retry-after"]), 1)

            async def retry():
                async with async_client(server, max_retries=5) as patient:
                    task = asyncio.create_task(patient.chat.completions.create(**FIELDS))
                    await asyncio.sleep(0.3)  # its first attempt was refused by then
                    for stream in held:
                        await asyncio.to_thread(stream.close)
                    return await task
            self.assertEqual(asyncio.run(retry()).usage.completion_tokens, 16)
            server.wait_idle(4)


if __name__ == "__main__":
    unittest.main()
