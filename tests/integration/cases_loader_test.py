"""Reports of users, tried: model files that are cut, that lie about their sizes, or whose chat
template is broken. Each ends in an error that helps, not in a signal or in memory without end."""

import resource
import subprocess
import tempfile
import unittest
from pathlib import Path

from server import MODEL, MODEL_FILE, ROOT, TROUPE, Server, Witness, free_port

CORPUS = ROOT / "tests/fuzz/corpus/gguf"
MEMORY_BYTES_MAX = 1 << 30
TEMPLATE_KEY = b"tokenizer.chat_template"


def troupe(*arguments, memory=None, timeout=60):
    def limit():
        if memory:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    return subprocess.run([TROUPE, *map(str, arguments)], capture_output=True, text=True,
                          errors="replace", timeout=timeout, check=False, preexec_fn=limit,
                          stdin=subprocess.DEVNULL)


def with_template(source):
    """The model's bytes with another chat template, padded to the old one's length."""
    content = bytearray(MODEL_FILE.read_bytes())
    at = content.index(TEMPLATE_KEY) + len(TEMPLATE_KEY) + 4  # behind the value's type
    size = int.from_bytes(content[at:at + 8], "little")
    text = source.encode()
    assert len(text) <= size, f"the template has room for {size} bytes"
    content[at + 8:at + 8 + size] = text + b" " * (size - len(text))
    return content


class LoaderCase(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="troupe-loader-")
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name, "model.gguf")

    def assert_refused(self, run, *words):
        self.assertTrue(0 < run.returncode < 128, f"{run.returncode}: {run.stderr[-2000:]}")
        self.assertNotIn("terminate called", run.stderr)
        self.assertLess(len(run.stderr), 2000)
        for word in words:
            self.assertIn(word, run.stderr)


class FileTest(LoaderCase):
    def test_every_broken_file_ends_in_an_error_that_names_it(self):
        paths = sorted(CORPUS.glob("*.gguf"))
        self.assertGreater(len(paths), 80)
        refused = 0
        for path in paths:
            with self.subTest(path.name):
                run = troupe("inspect", path, memory=MEMORY_BYTES_MAX)
                self.assertTrue(0 <= run.returncode < 128, f"{run.returncode}: {run.stderr}")
                if run.returncode != 0:
                    self.assert_refused(run, path.name)
                    refused += 1
        self.assertGreater(refused, 60)

    def test_a_download_that_was_cut_names_what_is_missing(self):
        whole = MODEL_FILE.read_bytes()
        self.path.write_bytes(whole)
        for size in (len(whole) - 1, len(whole) * 6 // 10):
            with open(self.path, "r+b") as file:
                file.truncate(size)
            for command in (("inspect", self.path), ("serve", self.path, "--port", free_port())):
                run = troupe(*command)
                self.assert_refused(run, "model.gguf", str(size))
                self.assertRegex(run.stderr, r"tensor|weight")
        for size in (*range(0, 40), *range(40, 4097, 97)):
            with open(self.path, "r+b") as file:
                file.truncate(size)
            if size == 0:
                self.assert_refused(troupe("inspect", self.path, memory=MEMORY_BYTES_MAX))
            self.path.write_bytes(whole[:size])
            self.assert_refused(troupe("inspect", self.path, memory=MEMORY_BYTES_MAX), "model.gguf")

    def test_a_file_replaced_under_a_running_server_disturbs_nobody(self):
        self.path.write_bytes(MODEL_FILE.read_bytes())
        with Server(model=self.path) as server, Witness(server):
            other = self.path.with_suffix(".new")
            other.write_bytes(b"GGUF")
            other.rename(self.path)
            server.complete("The sky is", max_tokens=8)
            self.path.unlink()
            server.complete("The sky is", max_tokens=8, cache_salt="cold")


class TemplateTest(LoaderCase):
    def serve(self, source):
        self.path.write_bytes(with_template(source))
        return Server(model=self.path)

    def ask(self, server, *roles, **fields):
        return server.post("/v1/chat/completions", {
            "model": MODEL, "max_tokens": 2,
            "messages": [{"role": role, "content": "x"} for role in roles]} | fields)

    def test_what_a_template_refuses_is_the_clients_mistake_in_its_own_words(self):
        source = ("{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
                  "{{ raise_exception('Roles must take turns: user, assistant') }}{% endif %}"
                  "{{ m.content }}{% endfor %}")
        with self.serve(source) as server:
            self.assertEqual(self.ask(server, "user", "assistant", "user").status, 200)
            for stream in (False, True):
                reply = self.ask(server, "user", "user", stream=stream)
                self.assertEqual(reply.status, 400, reply.body)
                error = reply.json()["error"]
                self.assertEqual(error["type"], "invalid_request_error")
                self.assertIn("Roles must take turns: user, assistant", error["message"])
            server.wait_idle()

    def test_a_template_without_end_is_cut_and_others_are_served(self):
        for source in ("{% for i in range(10**12) %}x{% endfor %}",
                       "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}"
                       "{% endfor %}",
                       "{% set s = 'x' * 1073741824 %}{{ s }}",
                       "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"):
            with self.subTest(source), self.serve(source) as server, Witness(server):
                reply = self.ask(server, "user")
                self.assertEqual(reply.status, 400, reply.body)
                self.assertIn("template", reply.json()["error"]["message"])
                self.assertLess(server.resident_bytes(), 3 << 30)

    def test_a_template_that_is_wrong_in_itself_is_found_at_the_start(self):
        for source, line in (("{% if %}", 1), ("\n\n{{ messages | frobnicate }}", 3),
                             ("{% for m in messages %}", 1), ("{{ 'x", 1)):
            with self.subTest(source):
                self.path.write_bytes(with_template(source))
                run = troupe("serve", self.path, "--port", free_port())
                self.assert_refused(run, "model.gguf", "template")
                self.assertRegex(run.stderr, rf"line {line}\b|:{line}\b")


if __name__ == "__main__":
    unittest.main()
