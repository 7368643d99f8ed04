"""Programs and packages that speak OpenAI's API on their own: curl, llm, LangChain, LiteLLM."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from server import MODEL, chat, parse_events, shared_server

# Without it the package asks the network for a table of prices when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

QUESTION = "What is the capital of France?"
STORY = "Tell me a story about a lighthouse."


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.base = f"http://127.0.0.1:{self.server.port}"

    def reference(self, content, max_tokens, **fields):
        return self.server.post("/v1/chat/completions", {"model": MODEL} | chat(
            content, max_tokens=max_tokens, temperature=0, **fields)).json()


@unittest.skipUnless(shutil.which("curl"), "curl is not installed")
class CurlTest(ClientTest):
    def curl(self, *arguments, data=None, timeout=60):
        return subprocess.run(["curl", "--silent", "--show-error", *arguments], input=data,
                              capture_output=True, timeout=timeout, check=False)

    def post(self, body, *arguments):
        return self.curl("--json", "@-", *arguments, f"{self.base}/v1/chat/completions",
                         data=json.dumps({"model": MODEL} | body).encode())

    def test_an_answer_and_a_stream(self):
        body = chat(STORY, max_tokens=12, temperature=0)
        expected = self.reference(STORY, 12)["choices"]
        self.assertEqual(json.loads(self.post(body).stdout)["choices"], expected)
        run = self.post(body | {"stream": True}, "--no-buffer", "--include")
        head, _, events = run.stdout.partition(b"\r\n\r\n")
        self.assertIn(b"text/event-stream", head)
        text = "".join(event["choices"][0]["delta"].get("content") or ""
                       for event in parse_events(events))
        self.assertEqual(text, expected[0]["message"]["content"])

    def test_each_version_and_way_of_sending(self):
        body = chat(QUESTION, max_tokens=3, temperature=0)
        expected = self.reference(QUESTION, 3)["choices"]
        large = body | {"metadata": {"note": "x" * 5000}}  # curl announces it with Expect
        for name, sent, arguments in (
                ("HTTP/1.0", body, ["--http1.0"]), ("chunked", body, ["-H",
                 "Transfer-Encoding: chunked"]), ("Expect", large, ["-H", "Expect: 100-continue"]),
                ("compressed answers are welcome", body, ["--compressed"]),
                ("no content type", body, ["-H", "Content-Type:"]),
                ("HTTP/2 offered", body, ["--http2"])):
            with self.subTest(name):
                run = self.post(sent, *arguments)
                self.assertEqual(run.returncode, 0, run.stderr)
                self.assertEqual(json.loads(run.stdout).get("choices"), expected, run.stdout)

    def test_errors_make_curl_fail_and_one_connection_serves_many(self):
        run = self.curl("--fail-with-body", "--json", "{}", f"{self.base}/v1/chat/completions")
        self.assertEqual(run.returncode, 22)
        self.assertIn("error", json.loads(run.stdout))
        run = self.curl("--write-out", "%{http_code} %{num_connects}\n", "--output", os.devnull,
                        f"{self.base}/health", "--next", "--silent", "--write-out",
                        "%{http_code} %{num_connects}\n", "--json", "{}", "--output", os.devnull,
                        f"{self.base}/v1/completions", "--next", "--silent", "--write-out",
                        "%{http_code} %{num_connects}\n", "--output", os.devnull,
                        f"{self.base}/v1/models")
        self.assertEqual(run.stdout.decode().split("\n")[:3], ["200 1", "400 0", "200 0"])

    def test_a_curl_that_gives_up_leaves_nothing_running(self):
        for stream in (False, True):
            run = self.post(chat(STORY, max_tokens=4000, ignore_eos=True, stream=stream),
                            "--max-time", "0.6", "--output", os.devnull)
            self.assertEqual(run.returncode, 28, run.stderr)
            self.server.wait_idle(4)


class LlmTest(ClientTest):
    """Simon Willison's command line."""

    def test_prompts_streamed_and_not_and_a_conversation(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "extra-openai-models.yaml").write_text(
                f"- model_id: here\n  model_name: {MODEL}\n  api_base: {self.base}/v1\n",
                encoding="utf-8")
            environment = os.environ | {"LLM_USER_PATH": folder, "OPENAI_API_KEY": "none"}

            def llm(*arguments):
                run = subprocess.run(
                    [sys.executable, "-c", "from llm.cli import cli; cli()", *arguments],
                    capture_output=True, text=True, timeout=60, env=environment, check=False,
                    stdin=subprocess.DEVNULL)
                self.assertEqual(run.returncode, 0, run.stderr[-2000:])
                return run.stdout
            flags = ("-m", "here", "-o", "temperature", "0", "-o", "max_tokens", "30")
            expected = self.reference(QUESTION, 30)["choices"][0]["message"]["content"]
            self.assertEqual(llm(*flags, QUESTION).strip(), expected.strip())
            self.assertEqual(llm(*flags, "--no-stream", QUESTION).strip(), expected.strip())
            self.assertTrue(llm(*flags, "--continue", "And of Spain?").strip())
            usage = json.loads(llm("logs", "list", "--json", "--count", "1"))[0]
            self.assertGreater(usage["input_tokens"], 20)  # the history went with it
            self.assertGreater(usage["output_tokens"], 0)


class LangChainTest(ClientTest):
    def model(self, **options):
        from langchain_openai import ChatOpenAI
        return ChatOpenAI(**({"model": MODEL, "base_url": f"{self.base}/v1", "api_key": "none",
                              "temperature": 0, "max_tokens": 24, "max_retries": 0} | options))

    def test_invoke_stream_batch_and_await(self):
        model = self.model()
        expected = self.reference(QUESTION, 24)
        text = expected["choices"][0]["message"]["content"]
        answer = model.invoke([("system", "You are a helpful AI assistant named SmolLM, trained "
                                "by Hugging Face"), ("human", QUESTION)])
        self.assertEqual(answer.content, text)  # the system message is the template's default
        self.assertEqual(answer.usage_metadata["input_tokens"], expected["usage"]["prompt_tokens"])
        self.assertEqual(answer.response_metadata["finish_reason"], "stop")
        chunks = list(model.stream(QUESTION, stream_usage=True))
        self.assertEqual("".join(chunk.content for chunk in chunks), text)
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        self.assertEqual(whole.usage_metadata["total_tokens"], expected["usage"]["total_tokens"])
        self.assertEqual([a.content for a in model.batch([QUESTION, QUESTION])], [text] * 2)

        async def run():
            return [chunk.content async for chunk in model.astream(QUESTION)]
        self.assertEqual("".join(asyncio.run(run())), text)

    def test_a_conversation_over_the_context_is_known_as_one(self):
        from langchain_core.exceptions import ContextOverflowError
        with self.assertRaises(ContextOverflowError):
            self.model().invoke("word " * 9000)

    def test_logprobs_and_bound_fields(self):
        answer = self.model().bind(logprobs=True, top_logprobs=2, stop=["Paris"]).invoke(QUESTION)
        self.assertNotIn("Paris", answer.content)
        self.assertEqual(len(answer.response_metadata["logprobs"]["content"][0]["top_logprobs"]), 2)


class LiteLlmTest(ClientTest):
    def call(self, **fields):
        import litellm
        return litellm.completion(**{
            "model": f"openai/{MODEL}", "api_base": f"{self.base}/v1", "api_key": "none",
            "temperature": 0, "max_tokens": 24, "num_retries": 0,
            "messages": [{"role": "user", "content": QUESTION}]} | fields)

    def test_completion_stream_and_await(self):
        import litellm
        expected = self.reference(QUESTION, 24)
        text = expected["choices"][0]["message"]["content"]
        answer = self.call()
        self.assertEqual(answer.choices[0].message.content, text)
        self.assertEqual(answer.usage.total_tokens, expected["usage"]["total_tokens"])
        chunks = list(self.call(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices),
                         text)
        rebuilt = litellm.stream_chunk_builder(chunks)
        self.assertEqual(rebuilt.choices[0].message.content, text)
        self.assertEqual(rebuilt.choices[0].finish_reason, "stop")
        self.assertEqual(rebuilt.usage.completion_tokens, expected["usage"]["completion_tokens"])

        async def run():
            return await litellm.acompletion(
                model=f"openai/{MODEL}", api_base=f"{self.base}/v1", api_key="none", temperature=0,
                max_tokens=24, messages=[{"role": "user", "content": QUESTION}])
        self.assertEqual(asyncio.run(run()).choices[0].message.content, text)

    def test_the_other_name_for_compatible_servers_and_text_completion(self):
        import litellm
        text = self.reference(QUESTION, 24)["choices"][0]["message"]["content"]
        self.assertEqual(self.call(model=f"hosted_vllm/{MODEL}").choices[0].message.content, text)
        answer = litellm.text_completion(
            model=f"text-completion-openai/{MODEL}", api_base=f"{self.base}/v1", api_key="none",
            prompt="The capital of France is", max_tokens=4, temperature=0)
        self.assertIn("Paris", answer.choices[0].text)

    def test_mistakes_become_the_packages_own_exceptions(self):
        import litellm
        for error, fields in ((litellm.BadRequestError, {"temperature": 9}),
                              (litellm.ContextWindowExceededError, {"max_tokens": 10**6}),
                              (litellm.NotFoundError, {"model": "openai/gpt-9"})):
            with self.subTest(error.__name__), self.assertRaises(error):
                self.call(**fields)


if __name__ == "__main__":
    unittest.main()
