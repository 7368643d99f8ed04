"""A server that speaks just enough of the OpenAI API to be loaded, and misbehaves on demand."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class FakeServer:
    """`plan(number, body)` says how to answer the n-th generation, counted from 0: a dictionary with
    the keys of `Answer.defaults`. Use as a context manager; `seen` has the bodies."""

    defaults = {
        "status": 200, "headers": {}, "body": None,  # of an answer that is no stream
        "first_s": 0.0, "gap_s": 0.0, "tokens": None,  # None: as many as asked for
        "usage": True, "done": True, "finish": True,
        "raw": None,       # bytes instead of the events
        "split": None,     # written in pieces of so many bytes
        "cut_after": None,  # the connection is reset after so many tokens
        "error_after": None,  # an error event after so many tokens
        "hang_after": None,  # silence after so many tokens
    }

    def __init__(self, plan=None, tokenize=None):
        self.plan, self.tokenize = plan or (lambda number, body: {}), tokenize
        self.seen, self.lock, self.ended = [], threading.Lock(), threading.Event()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                if self.path == "/v1/models":
                    self.reply(200, {"object": "list", "data": [{"id": "fake"}]})
                else:
                    self.reply(404, {"error": {"message": "no such page"}})

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if self.path == "/tokenize":
                    if fake.tokenize is None:
                        self.reply(404, {"error": {"message": "no such page"}})
                    else:
                        self.reply(200, {"count": fake.tokenize(body["prompt"])})
                    return
                with fake.lock:
                    number = len(fake.seen)
                    fake.seen.append(body)
                self.generate(body, fake.defaults | fake.plan(number, body))

            def reply(self, status, body, headers=None):
                content = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def chunk(self, content):
                self.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n")
                self.wfile.flush()

            def send(self, content, how):
                size = how["split"] or len(content)
                for i in range(0, len(content), size):
                    self.chunk(content[i:i + size])

            def generate(self, body, how):
                if how["status"] != 200:
                    self.reply(how["status"], how["body"] or {}, how["headers"])
                    return
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    self.stream(body, how)
                    self.wfile.write(b"0\r\n\r\n")
                except ConnectionError:
                    self.close_connection = True

            def stream(self, body, how):
                if how["raw"] is not None:
                    self.send(how["raw"], how)
                    return
                is_chat = "messages" in body
                wanted = body.get("max_completion_tokens", body.get("max_tokens"))
                count = wanted if how["tokens"] is None else how["tokens"]
                time.sleep(how["first_s"])
                for i in range(count):
                    if i == how["cut_after"]:
                        raise ConnectionError
                    if i == how["error_after"]:
                        self.send(b'data: {"error":{"message":"worker lost"}}\n\n', how)
                        return
                    if i == how["hang_after"]:
                        fake.ended.wait(30)
                        raise ConnectionError
                    if i > 0:
                        time.sleep(how["gap_s"])
                    text = f" w{i}"
                    choice = {"index": 0, "finish_reason":
                              "length" if how["finish"] and i == count - 1 else None}
                    choice |= {"delta": {"content": text}} if is_chat else {"text": text}
                    self.event({"choices": [choice]}, how)
                if how["usage"]:
                    self.event({"choices": [], "usage": {"prompt_tokens": 7,
                                                         "completion_tokens": count}}, how)
                if how["done"]:
                    self.send(b"data: [DONE]\n\n", how)

            def event(self, data, how):
                self.send(b"data: " + json.dumps(data).encode() + b"\n\n", how)

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_):
                pass  # a client that leaves is no news

        self.server = Server(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.server.shutdown()
        self.server.server_close()
