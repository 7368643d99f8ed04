"""The RPC as the tests use it: pycapnp around schema/serving.capnp."""

import asyncio
import os

import capnp
from server import MODEL, ROOT

rpc = capnp.load(str(ROOT / "schema" / "serving.capnp"),
                 imports=[os.path.dirname(os.path.dirname(capnp.__file__))])
TEST_S = 120


def run(main, seconds=TEST_S):
    """Runs a coroutine function to its end within a deadline."""
    async def bounded():
        await asyncio.wait_for(main(), seconds)
    asyncio.run(capnp.run(bounded()))


class Connection:
    """One connection; use as an asynchronous context manager."""

    def __init__(self, port):
        self.port = port

    async def __aenter__(self):
        self.stream = await capnp.AsyncIoStream.create_connection("127.0.0.1", self.port)
        self.client = capnp.TwoPartyClient(self.stream)
        self.serving = self.client.bootstrap().cast_as(rpc.Serving)
        return self

    async def __aexit__(self, *_):
        self.client.close()
        self.stream.close()

    def complete(self, prompt, sink=None, **parameters):
        prompt = {"text": prompt} if isinstance(prompt, str) else {"tokens": prompt}
        options = {} if sink is None else {"sink": sink}
        return self.serving.complete(model=MODEL, prompt=prompt, parameters=parameters, **options)

    def chat(self, content, sink=None, **parameters):
        options = {} if sink is None else {"sink": sink}
        return self.serving.chat(model=MODEL, messages=[{"role": "user", "content": content}],
                                 parameters=parameters, **options)


class Recorder(rpc.ResponseSink.Server):
    """A sink that keeps what it is given; with a gate, an asyncio.Event, it answers no chunk before
    that is set."""

    def __init__(self, gate=None):
        self.gate = gate
        self.chunks, self.text, self.tokens, self.ends = 0, "", [], 0
        self.errors = []
        self.calls = []  # of choice 0, [id, name, arguments]
        self.finish_reason = None

    async def chunk(self, chunk, **_):
        self.chunks += 1
        for choice in chunk.choices:
            self.text += choice.text
            self.tokens += [(token.id, token.logprob) for token in choice.tokens]
            for call in choice.toolCalls if choice.index == 0 else []:
                if call.name:
                    assert call.index == len(self.calls)
                    self.calls.append([call.id, call.name, ""])
                self.calls[call.index][2] += call.arguments
            if choice.finishReason != "unfinished":
                self.finish_reason = str(choice.finishReason)
        if self.gate:
            await self.gate.wait()

    async def end(self, answer, **_):
        self.ends += 1

    async def failed(self, error, **_):
        self.errors.append((str(error.code), error.param, error.message))
