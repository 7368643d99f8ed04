"""The RPC of a real server, by pycapnp, by the C++ client and by garbage."""

import asyncio
import json
import re
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import capnp
import jsonschema
from rpc_client import Connection, Recorder, run
from server import BUILD, MODEL, ROOT, Server, free_port

PROMPTS = ["The capital of France is", "def fibonacci(n):", "Once upon a time", "1, 2, 3, 4,",
           "Dear Sir or Madam,", "The sea", "El perro", "\U0001F9A6 otters are"]


class RpcTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.port = free_port()
        cls.server = Server("--rpc-port", cls.port).__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()

    def connect(self):
        return Connection(self.port)

    def test_the_second_ready_line_names_the_port(self):
        self.assertIn(f"ready: rpc 127.0.0.1:{self.port}\n", self.server.output())

    def test_models_health_and_version(self):
        async def main():
            async with self.connect() as line:
                models = (await line.serving.models()).models
                self.assertEqual([model.name for model in models], [MODEL])
                listed = self.server.get("/v1/models").json()["data"][0]
                self.assertEqual(models[0].contextTokens, listed["max_model_len"])
                self.assertTrue(models[0].chat)
                self.assertTrue((await line.serving.health()).ready)
                self.assertEqual((await line.serving.version()).version,
                                 self.server.get("/version").json()["version"])
        run(main)

    def test_the_same_tokens_and_log_probabilities_as_by_http(self):
        async def main():
            async with self.connect() as line:
                for prompt in PROMPTS:
                    answer = (await line.complete(prompt, temperature=0, maxTokens=12,
                                                  logprobs=3)).answer
                    choice = answer.choices[0]
                    by_http = self.server.complete(prompt, temperature=0, max_tokens=12,
                                                   logprobs=3)
                    expected = by_http["choices"][0]
                    self.assertEqual(choice.text, expected["text"])
                    self.assertEqual(str(choice.finishReason), expected["finish_reason"])
                    logprobs = expected["logprobs"]
                    # HTTP prints the shortest decimal that is the same float.
                    self.assertEqual([as_float(token.logprob) for token in choice.tokens],
                                     [as_float(value) for value in logprobs["token_logprobs"]])
                    for token, top in zip(choice.tokens, logprobs["top_logprobs"]):
                        self.assertEqual(sorted(as_float(t.logprob) for t in token.top),
                                         sorted(as_float(value) for value in top.values()))
                    self.assertEqual(answer.usage.completionTokens,
                                     by_http["usage"]["completion_tokens"])
                    self.assertEqual(answer.usage.promptTokens, by_http["usage"]["prompt_tokens"])
                    detokenized = await line.serving.detokenize(
                        model=MODEL, tokens=[token.id for token in choice.tokens])
                    self.assertTrue(detokenized.text.startswith(choice.text))
        run(main)

    def test_a_seeded_chat_with_choices_is_that_of_http(self):
        async def main():
            async with self.connect() as line:
                answer = (await line.chat("Name a colour.", temperature=1.2, topK=40, topP=0.95,
                                          seed={"value": 7}, n=3, maxTokens=10,
                                          frequencyPenalty=0.5)).answer
                by_http = self.server.post("/v1/chat/completions", {
                    "model": MODEL, "messages": [{"role": "user", "content": "Name a colour."}],
                    "temperature": 1.2, "top_k": 40, "top_p": 0.95, "seed": 7, "n": 3,
                    "max_tokens": 10, "frequency_penalty": 0.5}).json()
                self.assertEqual([choice.text for choice in answer.choices],
                                 [c["message"]["content"] for c in by_http["choices"]])
        run(main)

    def test_tokenize_is_that_of_http(self):
        async def main():
            async with self.connect() as line:
                for prompt in PROMPTS:
                    tokens = (await line.serving.tokenize(prompt=prompt)).tokens
                    expected = self.server.post("/tokenize", {"prompt": prompt}).json()["tokens"]
                    self.assertEqual(list(tokens), expected)
                    by_tokens = (await line.complete(expected, temperature=0, maxTokens=5)).answer
                    by_text = (await line.complete(prompt, temperature=0, maxTokens=5)).answer
                    self.assertEqual(by_tokens.choices[0].text, by_text.choices[0].text)
        run(main)

    def test_a_stream_is_the_whole_answer_in_pieces(self):
        async def main():
            async with self.connect() as line:
                options = dict(temperature=0, maxTokens=30, ignoreEos=True, logprobs=0)
                whole = (await line.complete("Count: 1, 2,", **options)).answer.choices[0]
                sink = Recorder()
                answer = (await line.complete("Count: 1, 2,", sink, **options)).answer
                self.assertEqual(sink.text, whole.text)
                self.assertEqual(sink.tokens, [(t.id, t.logprob) for t in whole.tokens])
                self.assertEqual(sink.finish_reason, "length")
                self.assertEqual((sink.ends, sink.errors), (1, []))
                self.assertGreater(sink.chunks, 5)
                self.assertEqual(len(answer.choices), 0)
                self.assertEqual(answer.usage.completionTokens, 30)
        run(main)

    def test_a_slow_reader_slows_only_itself(self):
        async def main():
            async with self.connect() as line:
                # About 2 KiB a step, so that the window is full long before the end.
                options = dict(temperature=0, maxTokens=80, n=8, ignoreEos=True, logprobs=20)
                gate = asyncio.Event()
                slow, fast = Recorder(gate), Recorder()
                slow_task = asyncio.ensure_future(line.complete("A story:", slow, **options))
                await line.complete("A story:", fast, **options)
                # On the same connection, and it did not have to wait.
                self.assertFalse(slow_task.done())
                self.assertEqual(len(fast.tokens), 8 * 80)
                self.assertLess(len(slow.tokens), 8 * 80)
                gate.set()
                await slow_task
                self.assertEqual(sorted(slow.tokens), sorted(fast.tokens))
                # What came while it was not answering was joined.
                self.assertLess(slow.chunks, fast.chunks)
        run(main)

    def test_dropping_a_request_cancels_it(self):
        async def main():
            async with self.connect() as line:
                sink = Recorder()
                task = asyncio.ensure_future(line.chat("Tell me everything.", sink,
                                                       maxTokens=4000, ignoreEos=True))
                while sink.chunks < 3:
                    await asyncio.sleep(0.01)
                self.assertFalse(self.server.idle())
                task.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await task
                self.server.wait_idle()
                self.assertTrue((await line.serving.health()).ready)
        run(main)

    def test_tools_are_those_of_http(self):
        schema = {"type": "object", "required": ["city", "days"], "additionalProperties": False,
                  "properties": {"city": {"type": "string", "maxLength": 12},
                                 "days": {"type": "integer", "minimum": 1, "maximum": 9}}}
        question = "What is the weather in Paris?"
        tools = [{"name": "weather", "description": "Tells the weather.",
                  "parameters": json.dumps(schema)}, {"name": "now"}]
        by_http = [{"type": "function", "function": tools[0] | {"parameters": schema}},
                   {"type": "function", "function": tools[1]}]
        named = {"type": "function", "function": {"name": "weather"}}
        choices = [({"required": None}, "required"), ({"named": "weather"}, named),
                   ({"none": None}, "none"), ({"automatic": None}, "auto")]

        async def main():
            async with self.connect() as line:
                for choice, http_choice in choices:
                    with self.subTest(choice):
                        options = dict(temperature=0, maxTokens=80, tools=tools, toolChoice=choice,
                                       parallelToolCalls=False)
                        expected = self.server.post("/v1/chat/completions", {
                            "model": MODEL, "messages": [{"role": "user", "content": question}],
                            "temperature": 0, "max_tokens": 80, "tools": by_http,
                            "tool_choice": http_choice,
                            "parallel_tool_calls": False}).json()["choices"][0]
                        whole = (await line.chat(question, **options)).answer.choices[0]
                        sink = Recorder()
                        await line.chat(question, sink, **options)
                        calls = [[call["function"]["name"], call["function"]["arguments"]]
                                 for call in expected["message"].get("tool_calls") or []]
                        self.assertEqual([[call.name, call.arguments] for call in whole.toolCalls],
                                         calls)
                        self.assertEqual([call[1:] for call in sink.calls], calls)
                        text = expected["message"]["content"] or ""
                        self.assertEqual((whole.text, sink.text), (text, text))
                        reason = expected["finish_reason"].replace("tool_calls", "toolCalls")
                        self.assertEqual((str(whole.finishReason), sink.finish_reason),
                                         (reason, reason))
                        if "named" in choice:
                            jsonschema.validate(json.loads(calls[0][1]), schema)
                # The result goes back as a message of its call.
                call = {"id": "call_1", "name": "weather", "arguments": "{}"}
                conversation = [{"role": "user", "content": question},
                                {"role": "assistant", "toolCalls": [call]},
                                {"role": "tool", "toolCallId": "call_1", "content": "Sunny."}]
                answer = (await line.serving.chat(
                    model=MODEL, messages=conversation,
                    parameters={"temperature": 0, "maxTokens": 12, "tools": tools})).answer
                http_call = {"id": "call_1", "type": "function",
                             "function": {"name": "weather", "arguments": "{}"}}
                expected = self.server.post("/v1/chat/completions", {
                    "model": MODEL, "temperature": 0, "max_tokens": 12, "tools": by_http,
                    "messages": [{"role": "user", "content": question},
                                 {"role": "assistant", "content": None, "tool_calls": [http_call]},
                                 {"role": "tool", "tool_call_id": "call_1",
                                  "content": "Sunny."}]}).json()
                self.assertEqual(answer.choices[0].text,
                                 expected["choices"][0]["message"]["content"] or "")
                self.assertEqual(answer.usage.promptTokens, expected["usage"]["prompt_tokens"])
        run(main)

    def test_leaving_cancels_everything(self):
        async def main():
            sinks = [Recorder() for _ in range(4)]
            async with self.connect() as line:
                tasks = [asyncio.ensure_future(line.complete(prompt, sink, maxTokens=4000,
                                                             ignoreEos=True))
                         for prompt, sink in zip(PROMPTS, sinks)]
                while min(sink.chunks for sink in sinks) < 2:
                    await asyncio.sleep(0.01)
            await asyncio.gather(*tasks, return_exceptions=True)
            self.server.wait_idle()
        run(main)

    def test_metrics_count_requests_of_either_kind(self):
        async def main():
            name = "vllm:request_success_total"
            before = self.server.metric(name)
            async with self.connect() as line:
                await line.complete("x", maxTokens=2, ignoreEos=True)
            self.server.complete("x", max_tokens=2, ignore_eos=True)
            self.assertEqual(self.server.metric(name), before + 2)
        run(main)

    def test_errors_name_the_field_in_the_words_of_http(self):
        faults = [({"temperature": 3}, {"temperature": 3}), ({"topP": 0}, {"top_p": 0}),
                  ({"n": 17}, {"n": 17}), ({"maxTokens": -2}, {"max_tokens": -2}),
                  ({"stop": [""]}, {"stop": [""]}), ({"logprobs": 21}, {"logprobs": 21}),
                  ({"maxTokens": 100000}, {"max_tokens": 100000}),
                  ({"stopTokenIds": [1 << 30]}, {"stop_token_ids": [1 << 30]})]

        async def main():
            async with self.connect() as line:
                for by_rpc, by_http in faults:
                    with self.subTest(by_rpc):
                        error = self.server.post("/v1/completions", {
                            "model": MODEL, "prompt": "x"} | by_http).json()["error"]
                        sink = Recorder()
                        with self.assertRaises(capnp.KjException) as caught:
                            await line.complete("x", sink, **by_rpc)
                        self.assertEqual(str(caught.exception.type), "FAILED")
                        self.assertIn(error["message"], caught.exception.description)
                        _, param, message = sink.errors[0]
                        self.assertEqual((param, message), (error["param"], error["message"]))
        run(main)

    def test_a_request_over_the_limit_is_refused_in_words(self):
        async def main():
            async with self.connect() as line:
                with self.assertRaises(capnp.KjException) as caught:
                    await line.complete("x" * (5 << 20))
                self.assertEqual(str(caught.exception.type), "FAILED")
                self.assertIn("at most 4194304 bytes", caught.exception.description)
                self.assertTrue((await line.serving.health()).ready)
        run(main)

    def test_a_message_over_the_limit_costs_its_connection_only(self):
        async def main():
            async with self.connect() as other, self.connect() as line:
                with self.assertRaises(capnp.KjException) as caught:
                    await line.complete("x" * (9 << 20))
                self.assertEqual(str(caught.exception.type), "DISCONNECTED")
                self.assertTrue((await other.serving.health()).ready)
        run(main)

    def test_garbage_costs_its_connection_and_one_line(self):
        garbage = [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\xff" * 64, b"\x16\x03\x01" + bytes(61),
                   b"\x00\x00\x00\x00\xff\xff\xff\x7f"]
        for data in garbage:
            before = self.server.output().count("sends what is no message")
            with socket.create_connection(("127.0.0.1", self.port), timeout=10) as line:
                line.sendall(data)
                try:
                    while line.recv(65536):
                        pass
                except ConnectionError:
                    pass
            self.assertEqual(self.server.output().count("sends what is no message"), before + 1)
        self.server.assert_alive()
        self.assertEqual(self.server.get("/health").status, 200)

    def test_64_streams_at_once_are_each_right(self):
        async def main():
            async with self.connect() as first, self.connect() as second:
                options = dict(temperature=0, maxTokens=16, ignoreEos=True)
                expected = [self.server.complete(prompt, temperature=0, max_tokens=16,
                                                 ignore_eos=True)["choices"][0]["text"]
                            for prompt in PROMPTS]
                sinks = [Recorder() for _ in range(64)]
                await asyncio.gather(*((first, second)[i % 2].complete(
                    PROMPTS[i % len(PROMPTS)], sink, **options) for i, sink in enumerate(sinks)))
                for i, sink in enumerate(sinks):
                    self.assertEqual(sink.text, expected[i % len(PROMPTS)])
                    self.assertEqual((sink.ends, len(sink.tokens)), (1, 16))
            self.server.wait_idle()
        run(main)

    def test_the_example_program_answers(self):
        program = BUILD / "bin" / "chat_client"
        answer = subprocess.run([program, f"127.0.0.1:{self.port}", "What is the capital of France?"],
                                capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("Paris", answer.stdout)
        self.assertRegex(answer.stdout, r"\(\d+ \+ \d+ tokens\)\n$")
        wrong = subprocess.run([program, f"127.0.0.1:{free_port()}", "?"], capture_output=True,
                               text=True, timeout=60, check=False)
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("cannot connect to 127.0.0.1", wrong.stderr)

    def test_the_examples_of_the_documentation_run(self):
        page = (ROOT / "docs/rpc.md").read_text(encoding="utf-8")
        program = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            answer = subprocess.run([sys.executable, file.name, ROOT, str(self.port)],
                                    capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertIn("Paris", answer.stdout)
        self.assertIn("temperature must be a number in [0, 2]; got 3", answer.stdout)
        excerpt = re.search(r"```cpp\n(.*?)```", page, re.DOTALL)[1]
        self.assertIn(excerpt, (ROOT / "examples/chat_client.cc").read_text(encoding="utf-8"))


class RpcEndTest(unittest.TestCase):
    def test_sigterm_lets_streams_finish(self):
        port = free_port()
        with Server("--rpc-port", port) as server:
            async def main():
                async with Connection(port) as line:
                    sink = Recorder()
                    task = asyncio.ensure_future(line.complete(
                        "A story:", sink, temperature=0, maxTokens=60, ignoreEos=True))
                    while sink.chunks < 2:
                        await asyncio.sleep(0.01)
                    server.send_signal(15)
                    await asyncio.sleep(0.1)
                    with self.assertRaises(capnp.KjException) as caught:
                        await line.complete("x", maxTokens=1)
                    self.assertEqual(str(caught.exception.type), "OVERLOADED")
                    await task
                    self.assertEqual((len(sink.tokens), sink.ends), (60, 1))
            run(main)
            self.assertEqual(server.wait(), 0, server.output()[-2000:])


def as_float(value):
    """The nearest single precision number, which both print in their own way."""
    return struct.unpack("f", struct.pack("f", value))[0]


if __name__ == "__main__":
    unittest.main()
