"""Usage: python_cases.py REPORT FILE_OR_FOLDER... [--only TEXT]...

Runs the unittest cases of x_test.py files; writes one JSON line per case to REPORT as it ends:
{"name", "result": "passed" | "failed" | "skipped", "seconds", "detail"}. With --only, runs the
cases whose name contains one of the texts."""

import argparse
import importlib.util
import json
import sys
import time
import unittest
from pathlib import Path


def load(path):
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def filtered(suite, texts):
    """The same tree (its nesting carries the class fixtures) without the cases not asked for."""
    kept = unittest.TestSuite()
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            kept.addTest(filtered(item, texts))
        elif not texts or any(text in item.id() for text in texts):
            kept.addTest(item)
    return kept


class Report(unittest.TestResult):
    """Tells of each case as it ends."""

    def __init__(self, file):
        super().__init__()
        self.file, self.began, self.faults, self.reason = file, 0.0, [], None

    def startTest(self, test):
        super().startTest(test)
        self.began, self.faults, self.reason = time.monotonic(), [], None

    def addError(self, test, err):
        super().addError(test, err)
        self.fault(test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fault(test, self.failures[-1][1])

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.faults.append(f"{subtest}\n{self._exc_info_to_string(err, test)}")
        super().addSubTest(test, subtest, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.reason = reason
        if not isinstance(test, unittest.TestCase):  # a whole class
            self.write(str(test), "skipped", reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.fault(test, "passed where a failure was expected")

    def fault(self, test, text):
        self.faults.append(text)
        if not isinstance(test, unittest.TestCase):  # a fixture of a class: no case of it ran
            self.write(str(test), "failed", text)
            self.faults = []

    def stopTest(self, test):
        super().stopTest(test)
        result = "failed" if self.faults else "skipped" if self.reason is not None else "passed"
        self.write(test.id(), result, "\n".join(self.faults) or self.reason or "")

    def write(self, name, result, detail):
        seconds = time.monotonic() - self.began if self.began else 0.0
        line = {"name": name, "result": result, "seconds": round(seconds, 3), "detail": detail}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("paths", type=Path, nargs="+")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    files = [file for path in options.paths
             for file in (sorted(path.glob("**/*_test.py")) if path.is_dir() else [path])]
    suite = unittest.TestSuite(load(file.resolve()) for file in files)
    with open(options.report, "w", encoding="utf-8") as file:
        result = Report(file)
        filtered(suite, options.only).run(result)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main()
