"""What clients build on top of the API: typed answers, tools, embeddings and the other protocols, as
the openai and anthropic packages, LangChain, LiteLLM and llm ask for them."""

import asyncio
import json
import math
import os
import subprocess
import sys
import tempfile
import typing
import unittest
from pathlib import Path

import anthropic
import openai
import pydantic
from server import MODEL, openai_client, shared_server

# Without it the package asks the network for a table of prices when it is imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

ASK = [{"role": "user", "content": "Invent a small city. What is its weather?"}]


class Weather(pydantic.BaseModel):
    """The weather of a city."""
    sky: typing.Literal["clear", "cloudy"]
    degrees: int = pydantic.Field(ge=-30, le=45)
    windy: bool


GREEDY = {"temperature": 0}  # no argument of the anthropic package
Small = typing.Annotated[int, pydantic.Field(ge=0, le=9)]
PARAMETERS = {"type": "object", "additionalProperties": False, "required": ["unit"],
              "properties": {"unit": {"type": "string", "enum": ["celsius", "kelvin"]}}}
TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather now.", "parameters": PARAMETERS}}


class FeatureCase(unittest.TestCase):
    def setUp(self):
        self.server = shared_server()
        self.base = f"http://127.0.0.1:{self.server.port}"
        self.fields = {"model": MODEL, "temperature": 0, "max_tokens": 80}


class OpenAiTest(FeatureCase):
    def test_an_answer_is_parsed_into_a_type_streamed_and_awaited(self):
        client = openai_client(self.server)
        parsed = client.chat.completions.parse(messages=ASK, response_format=Weather, **self.fields)
        weather = parsed.choices[0].message.parsed
        self.assertIsInstance(weather, Weather)
        with client.chat.completions.stream(messages=ASK, response_format=Weather,
                                            **self.fields) as stream:
            self.assertEqual(stream.get_final_completion().choices[0].message.parsed, weather)

        async def run():
            async with openai.AsyncOpenAI(base_url=f"{self.base}/v1", api_key="none") as waiting:
                chat = await waiting.chat.completions.parse(messages=ASK, response_format=Weather,
                                                            **self.fields)
                response = await waiting.responses.parse(
                    model=MODEL, input=ASK[0]["content"], text_format=Weather, temperature=0,
                    max_output_tokens=80)
                return chat.choices[0].message.parsed, response.output_parsed
        self.assertEqual(asyncio.run(run()), (weather, weather))

    def test_a_tool_made_from_a_type_is_called_and_its_result_understood(self):
        client = openai_client(self.server)
        tool = openai.pydantic_function_tool(Weather, name="report")
        parsed = client.chat.completions.parse(messages=ASK, tools=[tool], tool_choice={
            "type": "function", "function": {"name": "report"}}, **self.fields)
        message = parsed.choices[0].message
        (call,) = message.tool_calls
        self.assertIsInstance(call.function.parsed_arguments, Weather)
        # The message goes back as the package has it, null fields and all.
        again = client.chat.completions.create(messages=[
            *ASK, message, {"role": "tool", "tool_call_id": call.id, "content": "noted"}],
            tools=[tool], tool_choice="none", **self.fields)
        self.assertTrue(again.choices[0].message.content)
        self.assertIsNone(again.choices[0].message.tool_calls)

    def test_a_cancelled_response_stream_leaves_nothing_behind(self):
        async def run():
            async with openai.AsyncOpenAI(base_url=f"{self.base}/v1", api_key="none") as client:
                stream = await client.responses.create(
                    model=MODEL, input="Count to a million.", stream=True, store=False)
                async for event in stream:
                    if event.type == "response.output_text.delta":
                        break
                await stream.close()
        asyncio.run(run())
        self.server.wait_idle(4)


class AnthropicTest(FeatureCase):
    def test_the_asynchronous_client_streams_and_leaves(self):
        async def run():
            async with anthropic.AsyncAnthropic(base_url=self.base, api_key="none",
                                                max_retries=0) as client:
                fields = {"model": MODEL, "max_tokens": 20, "messages": ASK, "extra_body": GREEDY}
                whole = await client.messages.create(**fields)
                async with client.messages.stream(**fields) as stream:
                    text = "".join([piece async for piece in stream.text_stream])
                    final = await stream.get_final_message()
                async with client.messages.stream(**fields | {"max_tokens": 4000}) as stream:
                    async for _ in stream.text_stream:
                        break
                return whole, text, final
        whole, text, final = asyncio.run(run())
        self.assertEqual(text, whole.content[0].text)
        self.assertEqual(final.content[0].text, text)
        self.assertEqual(final.usage.output_tokens, whole.usage.output_tokens)
        self.server.wait_idle(4)

    def test_a_tool_is_used_and_its_result_given_back(self):
        client = anthropic.Anthropic(base_url=self.base, api_key="none", max_retries=0)
        fields = {"model": MODEL, "max_tokens": 80, "extra_body": GREEDY, "tools": [{
            "name": "get_weather", "description": "The weather now.", "input_schema": PARAMETERS}]}
        message = client.messages.create(messages=ASK, tool_choice={"type": "any"}, **fields)
        self.assertEqual(message.stop_reason, "tool_use")
        use = next(block for block in message.content if block.type == "tool_use")
        self.assertIn(use.input["unit"], ("celsius", "kelvin"))
        with client.messages.stream(messages=ASK, tool_choice={"type": "any"}, **fields) as stream:
            final = stream.get_final_message()
        self.assertEqual([b.input for b in final.content if b.type == "tool_use"],
                         [b.input for b in message.content if b.type == "tool_use"])
        after = client.messages.create(messages=[
            *ASK, {"role": "assistant", "content": message.content},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use.id,
                                          "content": "21 degrees"}]}],
            tool_choice={"type": "none"}, **fields)
        self.assertEqual(after.content[0].type, "text")


class LangChainTest(FeatureCase):
    def model(self, **options):
        from langchain_openai import ChatOpenAI
        return ChatOpenAI(**({"base_url": f"{self.base}/v1", "api_key": "none", "max_retries": 0}
                             | self.fields | options))

    def test_structured_output_by_each_of_its_methods(self):
        for method in ("json_schema", "function_calling"):
            with self.subTest(method):
                chain = self.model().with_structured_output(Weather, method=method)
                self.assertIsInstance(chain.invoke(ASK[0]["content"]), Weather)

    def test_tools_are_bound_called_and_answered(self):
        from langchain_core.messages import HumanMessage, ToolMessage
        from langchain_core.tools import tool

        @tool
        def add(a: Small, b: Small) -> int:
            """Add two numbers."""
            return a + b
        model = self.model().bind_tools([add], tool_choice="required", parallel_tool_calls=False)
        question = HumanMessage("What is 3 + 4?")
        answer = model.invoke([question])
        (call,) = answer.tool_calls
        self.assertEqual(call["name"], "add")
        result = add.invoke(call)
        self.assertIsInstance(result, ToolMessage)
        chunks = list(model.stream([question]))
        whole = chunks[0]
        for chunk in chunks[1:]:
            whole += chunk
        self.assertEqual([c["args"] for c in whole.tool_calls], [call["args"]])
        self.assertTrue(self.model().invoke([question, answer, result]).content)

    def test_embeddings_and_responses(self):
        from langchain_openai import OpenAIEmbeddings
        embeddings = OpenAIEmbeddings(model=MODEL, base_url=f"{self.base}/v1", api_key="none",
                                      check_embedding_ctx_length=False)
        texts = ["a lighthouse at sea", "a lighthouse by the sea", "def f(x): return x + 1"]
        one, two, three = embeddings.embed_documents(texts)
        self.assertAlmostEqual(math.sqrt(sum(x * x for x in one)), 1, places=4)
        self.assertEqual(embeddings.embed_query(texts[0]), one)

        def near(a, b):
            return sum(x * y for x, y in zip(a, b))
        self.assertGreater(near(one, two), near(one, three))
        answer = self.model(use_responses_api=True).invoke("What is the capital of France?")
        self.assertIn("Paris", answer.text)


class LiteLlmTest(FeatureCase):
    def test_typed_answers_tools_embeddings_and_responses(self):
        import litellm
        options = {"api_base": f"{self.base}/v1", "api_key": "none"}
        fields = options | {"model": f"openai/{MODEL}", "messages": ASK, "max_tokens": 80,
                            "temperature": 0}
        typed = litellm.completion(response_format=Weather, **fields)
        Weather.model_validate_json(typed.choices[0].message.content)
        called = litellm.completion(tools=[TOOL], tool_choice="required", **fields)
        self.assertEqual(called.choices[0].finish_reason, "tool_calls")
        arguments = json.loads(called.choices[0].message.tool_calls[0].function.arguments)
        self.assertIn(arguments["unit"], ("celsius", "kelvin"))
        vectors = litellm.embedding(model=f"openai/{MODEL}", input=["a", "b"], **options)
        self.assertEqual(len(vectors.data), 2)
        answer = litellm.responses(model=f"openai/{MODEL}", input="What is the capital of France?",
                                   temperature=0, max_output_tokens=30, **options)
        self.assertIn("Paris", answer.output_text)

    def test_the_other_protocol(self):
        import litellm
        answer = litellm.completion(
            model=f"anthropic/{MODEL}", api_base=self.base, api_key="none", max_tokens=30,
            temperature=0, messages=[{"role": "user", "content": "What is the capital of France?"}])
        self.assertIn("Paris", answer.choices[0].message.content)


class LlmTest(FeatureCase):
    def test_a_schema_on_the_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "extra-openai-models.yaml").write_text(
                f"- model_id: here\n  model_name: {MODEL}\n  api_base: {self.base}/v1\n"
                "  supports_schema: true\n", encoding="utf-8")
            run = subprocess.run(
                [sys.executable, "-c", "from llm.cli import cli; cli()", "-m", "here", "-o",
                 "temperature", "0", "-o", "max_tokens", "60", "--schema",
                 json.dumps(Weather.model_json_schema()), ASK[0]["content"]],
                capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL,
                env=os.environ | {"LLM_USER_PATH": folder, "OPENAI_API_KEY": "none"})
            self.assertEqual(run.returncode, 0, run.stderr[-2000:])
            Weather.model_validate_json(run.stdout)


if __name__ == "__main__":
    unittest.main()
