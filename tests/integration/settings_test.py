"""Settings from flags, variables and docs/operating/cluster.toml, by the real programs."""

import os
import re
import subprocess
import tempfile
import tomllib
import unittest
from pathlib import Path

from server import BUILD, ROOT

FILE = ROOT / "docs/operating/cluster.toml"
PROGRAMS = {"router": ["troupe-router"], "prefill": ["troupe-prefill"],
            "decode": ["troupe-decode"], "monitor": ["troupe-monitor"],
            "serve": ["troupe", "serve"], "chat": ["troupe", "chat"],
            # The prompt is no setting.
            "generate": ["troupe", "generate", "--prompt", "x"]}


def run(program, *arguments, variables=None):
    command = PROGRAMS[program]
    environment = {key: value for key, value in os.environ.items()
                   if not key.startswith("TROUPE_")} | (variables or {})
    return subprocess.run([BUILD / "bin" / command[0], *command[1:], *map(str, arguments)],
                          capture_output=True, text=True, timeout=30, check=False, env=environment)


def settings(program, *arguments, variables=None):
    """Of --print-config: the origin of each setting by its name, and the text itself."""
    shown = run(program, "--print-config", *arguments, variables=variables)
    assert shown.returncode == 0, shown.stderr
    return dict(re.findall(r"^([\w-]+) = .*?  # (.*)$", shown.stdout, re.MULTILINE)), shown.stdout


class SettingsTest(unittest.TestCase):
    def write(self, text):
        handle = tempfile.NamedTemporaryFile(mode="w", suffix=".toml")
        self.addCleanup(handle.close)
        handle.write(text)
        handle.flush()
        return handle.name

    def test_every_program_takes_the_annotated_file(self):
        written = tomllib.loads(FILE.read_text(encoding="utf-8"))
        common = {name for name, value in written.items() if not isinstance(value, dict)}
        taken = set()
        for program in PROGRAMS:
            with self.subTest(program):
                origins, _ = settings(program, "--config", FILE)
                own = set(written.get(program, {}))
                from_file = {name for name, origin in origins.items()
                             if origin.startswith(str(FILE))}
                self.assertEqual(from_file, own | (common & set(origins)))
                taken |= from_file & common
        self.assertEqual(taken, common, "each common line is for some program")

    def test_the_annotated_file_shows_every_setting_of_the_cluster_s_programs(self):
        written = tomllib.loads(FILE.read_text(encoding="utf-8"))
        common = {name for name, value in written.items() if not isinstance(value, dict)}
        shown = common.union(*(written[program] for program in ("router", "prefill", "decode",
                                                                "monitor")))
        for program in ("router", "prefill", "decode", "monitor"):
            origins, _ = settings(program)
            self.assertLessEqual(set(origins), shown, program)

    def test_what_is_printed_can_be_read_back(self):
        for program in PROGRAMS:
            _, printed = settings(program, "--config", FILE,
                                  variables={"TROUPE_SECRET": "correct horse battery"})
            self.assertNotIn("horse", printed)
            path = self.write(printed)
            origins, again = settings(program, "--config", path)
            self.assertEqual(set(origin.split(":")[0] for origin in origins.values()), {path})
            values = [re.sub(r" *#.*", "", text).splitlines() for text in (printed, again)]
            self.assertEqual(values[0], values[1])

    def test_a_flag_goes_before_a_variable_before_the_file(self):
        path = self.write("threads = 1\n[decode]\nthreads = 2\n")
        variables = {"TROUPE_CONFIG": path}
        self.assertEqual(settings("prefill", variables=variables)[0]["threads"], f"{path}:1")
        self.assertEqual(settings("decode", variables=variables)[0]["threads"], f"{path}:3")
        variables["TROUPE_THREADS"] = "3"
        self.assertEqual(settings("decode", variables=variables)[0]["threads"],
                         "variable TROUPE_THREADS")
        self.assertEqual(settings("decode", "--threads", 4, variables=variables)[0]["threads"],
                         "flag --threads")

    def test_mistakes_are_named_with_their_place(self):
        for program, text, words in (
                ("decode", "thraeds = 1\n", (":1:", "thraeds", "did you mean threads?")),
                ("router", "[router]\nhttp-port = \"8000\"\n", (":2:", "http-port", "not a text")),
                ("monitor", "[monitor]\nmodel = \"m\"\n", (":2:", "model", "no setting of")),
                ("serve", "max-running = 0\n", (":1:", "from 1 to 65536")),
                ("prefill", "[decoder]\n", (":1:", "[decoder]", "decode")),
                ("decode", "secret = \"correct horse battery\"\n", (":1:", "TROUPE_SECRET")),
                ("decode", "threads = = 1\n", (":1:", "not valid TOML"))):
            with self.subTest(text):
                path = self.write(text)
                ended = run(program, "--config", path)
                self.assertEqual(ended.returncode, 1)
                for word in (path, *words):
                    self.assertIn(word, ended.stderr)
                self.assertNotIn("horse", ended.stderr)
                self.assertEqual(ended.stderr.count("\n"), 1)

    def test_all_mistakes_are_told_of_at_once(self):
        path = self.write("polcy = \"kv_cost\"\n[serve]\nhttp-port = 8\nmax-running = \"8\"\n"
                          "kv-blocks = -1\n[sevre]\n")
        ended = run("serve", "m.gguf", "--config", path, "--port", "-1",
                    variables={"TROUPE_THRAEDS": "2"})
        self.assertEqual(ended.returncode, 1)
        for text in (f"{path}:1: unknown setting \"polcy\"",
                     f"{path}:3: http-port is no setting of [serve]",
                     f"{path}:4: max-running must be a whole number",
                     f"{path}:5: kv-blocks must be a whole number",
                     f"{path}:6: unknown table [sevre]; did you mean serve?",
                     "did you mean TROUPE_THREADS?", "--port must be a whole number"):
            self.assertIn(text, ended.stderr)
        path = self.write("threads = 1\nthreads = 2\n")
        ended = run("decode", "--config", path)
        self.assertEqual(ended.returncode, 1)
        self.assertIn(f"{path}:2:", ended.stderr)
        ended = run("serve", "m.gguf", "--prot", "8080", variables={"TROUPE_THRAEDS": "2"})
        self.assertGreater(ended.returncode, 0)
        self.assertIn("Did you mean --port?", ended.stderr)

    def test_a_node_needs_a_secret_that_is_one(self):
        open_to_all = self.write("0123456789abcdef")
        os.chmod(open_to_all, 0o644)
        for flags, variables, words in (
                ((), {}, "TROUPE_SECRET"),
                (("--secret-file", open_to_all), {}, f"chmod 600 {open_to_all}"),
                ((), {"TROUPE_SECRET": "horse"}, "fewer than 16 bytes"),
                (("--secret-file", "/nonexistent"), {}, "/nonexistent")):
            ended = run("monitor", "--join", "127.0.0.1:1", *flags, variables=variables)
            self.assertEqual(ended.returncode, 1)
            self.assertIn(words, ended.stderr)
            self.assertNotIn("horse", ended.stderr)


class UnitsTest(unittest.TestCase):
    def test_each_unit_runs_its_program_and_waits_longer_than_it_drains(self):
        drain = tomllib.loads(FILE.read_text(encoding="utf-8"))["drain-seconds"]
        for program in ("router", "prefill", "decode", "monitor"):
            unit = (FILE.parent / f"troupe-{program}.service").read_text(encoding="utf-8")
            self.assertIn(f"\nExecStart=/opt/troupe/bin/troupe-{program} --config ", unit)
            self.assertGreaterEqual(int(re.search(r"^TimeoutStopSec=(\d+)$", unit, re.M)[1]),
                                    drain + 10)
            for variable in re.findall(r"^Environment=TROUPE_(\w+)=", unit, re.M):
                name = variable.lower().replace("_", "-")
                self.assertIn(name, settings(program)[0])


if __name__ == "__main__":
    unittest.main()
