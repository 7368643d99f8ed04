#!/usr/bin/env python3
"""Usage: tools/run_tests.py BUILD_FOLDER [--python FILE] [NAME...]

Runs every test of a built tree and counts cases: those of the Boost.Test programs, the inputs of
the fuzz corpora, the Python cases of tests/unit and tests/integration, and the style check. NAME
selects programs and Python cases that contain it; `program:pattern` selects cases of one program as
Boost.Test's --run_test does. Ends with the line `N passed, N failed`, and with 1 when anything
failed or nothing ran."""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 600
OUTPUT_LINES_MAX = 120


@dataclass
class Case:
    name: str
    result: str  # passed, failed or skipped
    detail: str = ""
    seconds: float = 0.0


@dataclass
class Job:
    """One process, and how to read the cases out of what it leaves behind."""
    name: str
    command: list
    read: object                # (report path, output) -> list of Case
    environment: dict = field(default_factory=dict)
    timeout_s: float = TIMEOUT_S


def read_boost(report, _output):
    cases = []

    def walk(node, path):
        for child in node:
            name = child.get("name")
            if child.tag == "TestSuite":
                walk(child, path + [name])
            elif child.tag == "TestCase":
                result = child.get("result")
                cases.append(Case("/".join(path + [name]),
                                  result if result in ("passed", "skipped") else "failed"))
    root = ElementTree.parse(report).getroot()
    for suite in root:
        walk(suite, [])
    return cases


def read_python(report, _output):
    with open(report, encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [Case(l["name"], l["result"], l["detail"], l["seconds"]) for l in lines]


def read_corpus(_report, output):
    names = re.findall(r"^input (.*)$", output, re.MULTILINE)
    ended = re.search(r"^replayed (\d+) inputs$", output, re.MULTILINE)
    cases = [Case(name, "passed") for name in names]
    if cases and not ended:
        cases[-1].result = "failed"
    return cases


def read_exit(_report, _output):
    """A program that is one case; run() looks at how it ended."""
    return [Case("all", "passed")]


def run(job):
    """Runs a job. A process that did not end well always has at least one failed case."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        command = [str(part).replace("{report}", str(report)) for part in job.command]
        with open(Path(folder) / "output", "w+", encoding="utf-8", errors="replace") as output:
            try:
                process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL,
                                           stdout=output, stderr=subprocess.STDOUT,
                                           start_new_session=True,
                                           env=dict(os.environ, **job.environment))
            except OSError as error:
                return [Case("start", "failed", str(error))], "", 0.0
            try:
                code, fault = process.wait(timeout=job.timeout_s), None
            except subprocess.TimeoutExpired:
                code, fault = None, f"was ended after {job.timeout_s:.0f} s"
            finally:
                # Also what a test started and left behind.
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.wait()
            output.seek(0)
            text = output.read()
        try:
            cases = job.read(report, text)
        except (OSError, ValueError, ElementTree.ParseError):
            cases = []
            fault = fault or "wrote no report"
    if code and code < 0:
        fault = f"was ended by {signal.Signals(-code).name}"
    if job.read is read_exit and (fault or code):
        cases = []
    failed = any(case.result == "failed" for case in cases)
    if fault or (code != 0 and not failed):
        cases.append(Case("process", "failed", fault or f"ended with {code}"))
    if not cases:
        cases.append(Case("process", "failed", "no test ran"))
    return cases, text, time.monotonic() - began


def program_jobs(build):
    """The tests that CMake registered."""
    listing = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"],
                             capture_output=True, text=True, check=True)
    for test in json.loads(listing.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test.get("properties", [])}
        labels = properties.get("LABELS", [])
        command = test.get("command")
        if not command:  # registered, but not built
            command = [str(Path(build) / "tests" / test["name"])]
        if "boost_test" in labels:
            command = command + ["--log_level=error", "--report_level=detailed",
                                 "--report_format=XML", "--report_sink={report}",
                                 "--color_output=no"]
            read = read_boost
        else:
            read = read_corpus if "corpus" in labels else read_exit
        yield Job(test["name"], command, read,
                  timeout_s=float(properties.get("TIMEOUT", TIMEOUT_S)))


def python_job(name, python, paths, only, environment=None):
    command = [python, ROOT / "tests/support/python_cases.py", "{report}", *paths]
    for text in only:
        command += ["--only", text]
    return Job(name, command, read_python, environment or {})


def select(jobs, names):
    """The programs that were asked for, with the pattern of cases where one was given."""
    for job in jobs:
        for name in names:
            program, _, pattern = name.partition(":")
            if program in job.name:
                if pattern and job.read is read_boost:
                    job.command = job.command + [f"--run_test={pattern}"]
                yield job
                break


def plan(options):
    """(jobs that run side by side, jobs that then run one after another)."""
    environment = {"TROUPE_BUILD": str(Path(options.build).resolve())}
    programs = list(program_jobs(options.build))
    tidy = Job("tidy", [sys.executable, ROOT / "tools/tidy.py"], read_exit)
    unit, integration = ROOT / "tests/unit", ROOT / "tests/integration"
    if options.names:
        chosen = list(select(programs + [tidy], options.names))
        python = [name for name in options.names
                  if not any(name.partition(":")[0] in job.name for job in chosen)]
        side_by_side, one_by_one = chosen, []
        for name, folder, where in (("unit", unit, side_by_side),
                                    ("integration", integration, one_by_one)):
            files = [path for path in sorted(folder.glob("**/*_test.py"))
                     if any(text in path.stem or text in path.read_text(encoding="utf-8")
                            for text in python)]
            if python and files:
                only = [] if any(text in path.stem for path in files for text in python) else python
                where.append(python_job(name, options.python, files, only, environment))
        return side_by_side, one_by_one
    return (programs + [tidy, python_job("unit", options.python, [unit], [])],
            [python_job(file.stem, options.python, [file], [], environment)
             for file in sorted(integration.glob("**/*_test.py"))])


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []

    def take(self, job, outcome):
        cases, output, seconds = outcome
        bad = [case for case in cases if case.result == "failed"]
        skipped = [case for case in cases if case.result == "skipped"]
        self.passed += len(cases) - len(bad) - len(skipped)
        self.failed += len(bad)
        self.skipped += len(skipped)
        mark = "FAILED" if bad else "ok"
        print(f"{mark:6} {job.name}: {len(cases)} cases, {seconds:.1f} s", flush=True)
        for case in skipped:
            print(f"       skipped {case.name}: {case.detail}", flush=True)
        if not bad:
            return
        lines = output.rstrip().splitlines()
        if len(lines) > OUTPUT_LINES_MAX:
            print(f"       … {len(lines) - OUTPUT_LINES_MAX} lines left out")
        for line in lines[-OUTPUT_LINES_MAX:]:
            print(f"       | {line}")
        for case in bad:
            self.failures.append(f"{job.name}: {case.name}")
            for line in case.detail.rstrip().splitlines():
                print(f"       > {line}")
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", help="the build folder")
    parser.add_argument("--python", default=sys.executable, help="runs the Python cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()

    history = Path(options.build) / "test-seconds.json"
    try:
        seconds = json.loads(history.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        seconds = {}
    side_by_side, one_by_one = plan(options)
    if not side_by_side and not one_by_one:
        print(f"No test is named like {' or '.join(options.names)}.")
    # The longest first, so that none is left running alone at the end.
    side_by_side.sort(key=lambda job: -seconds.get(job.name, 1e9))
    tally = Tally()

    def finish(job, outcome):
        tally.take(job, outcome)
        seconds[job.name] = outcome[2]

    with ThreadPoolExecutor(max(options.jobs, 1)) as pool:
        for job, outcome in zip(side_by_side, pool.map(run, side_by_side)):
            finish(job, outcome)
    for job in one_by_one:
        finish(job, run(job))
    history.write_text(json.dumps(seconds, indent=1), encoding="utf-8")
    for failure in tally.failures:
        print(f"FAILED {failure}")
    ran = tally.passed + tally.failed
    if tally.skipped:
        print(f"{tally.skipped} skipped, for the reasons above")
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 0 if ran > 0 and tally.failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
