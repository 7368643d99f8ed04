#!/usr/bin/env python3
"""Usage: tools/tidy.py [ROOT]

The style of the project as a test: what a reader can rely on everywhere, checked on every file that
git knows or would add. Prints one line per finding, `path:line: rule: what to do`, and ends with 1
when there is any. Formatting is clang-format's business, see tools/check."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

LINE_MAX = 100
FUNCTION_LINES_MAX = 70
SOURCE_LINES_MAX = 800
HEADER_LINES_MAX = 300
TEST_FUNCTION_LINES_MAX = 100  # a test case tells one story; cutting it up does not help the reader

# A folder may use only folders of a lower level, and itself. Of the folders of one level, none uses
# another.
LAYERS = {"include": 0, "base": 1, "schema": 1, "kernels": 2, "engine": 3, "transport": 3,
          "policies": 3, "actors": 4, "sim": 5, "client": 5, "loadgen": 5, "apps": 6}
FREE_FOLDERS = {"tests", "bench"}  # may use everything
CODE_FOLDERS = set(LAYERS) | FREE_FOLDERS

# (pattern, allowed where the path matches, what to do instead). Looked for in C++ without its
# comments and strings.
CLOCK = "take a troupe::Clock through the constructor (base/clock.h)"
RANDOM = "take random numbers from a counter (base/philox.h)"
OS_AND_APPS = r"^(base/os|apps|bench)/"
BANNED = [
    (r"\b(steady|system|high_resolution)_clock::now\b", OS_AND_APPS, CLOCK),
    (r"\b(gettimeofday|clock_gettime)\s*\(", OS_AND_APPS, CLOCK),
    (r"(?<![\w.>:])(std::)?time\s*\(\s*(nullptr|NULL|0)\s*\)", OS_AND_APPS, CLOCK),
    (r"\b(sleep_for|sleep_until|usleep|nanosleep)\b", OS_AND_APPS,
     "wait for the event itself, with a deadline; tests advance a ManualClock"),
    (r"(?<![\w.>])s?rand\s*\(", None, RANDOM),
    (r"\brandom_device\b", r"^(base/os|apps)/", RANDOM),
    (r"\bgetenv\b", r"^(base/os|apps|tests|bench)/", "take the value as an option from apps/"),
    (r"(?<!\w)(std::)?(printf|puts|putchar)\s*\(", r"^(apps|tests|bench)/",
     "return a value, or log with glog"),
    (r"\bstd::(cout|cerr)\b", r"^(apps|tests|bench)/", "return a value, or log with glog"),
    (r"\bstd::function\b", r"^(?!kernels/)", "take a template parameter or a function pointer"),
    (r"\[=\]|\[=,", None, "name what the lambda captures"),
    (r"(?<![\w.>:])assert\s*\(", None, "use TROUPE_ASSERT (base/assert.h), which stays on"),
    (r"^using\s+namespace\b", r"\.cc$", "write out the names in a header"),
    (r"\b(strcpy|strcat|sprintf|vsprintf|gets|atoi|atof|strtok)\s*\(", None,
     "use std::string and std::from_chars"),
]

# (pattern of an include, allowed where the path matches, what to do instead).
INCLUDES = [
    (r"^caf/", r"^(actors/[^/]+/\w+_actor\.(h|cc)|apps/.*|tests/.*|bench/.*)$",
     "only an actor's shell (x_actor) and apps see CAF; keep the core plain"),
    (r"^(kj/(async|timer|compat/)|capnp/(rpc|ez-rpc|capability))",
     r"^(actors/gateway|client|loadgen|apps|tests|bench|include/troupe/client)/",
     "KJ's event loop belongs to actors/gateway, client, loadgen and apps"),
    (r"^(kj|capnp)/", r"^(actors|client|loadgen|apps|schema|tests|bench|include/troupe/client)/",
     "messages are turned into plain structs in actors/wire"),
    (r"^(ucp|uct|ucs)/", r"^(transport/ucx|tests|bench)/", "UCX belongs to transport/ucx"),
    (r"^(cuda|cublas|nccl)", r"^(kernels/cuda|engine/backend/cuda|transport/collectives|tests)/",
     "CUDA belongs to kernels/cuda, engine/backend/cuda and transport/collectives"),
]

# The project speaks of itself alone. Spelt so that this file does not find itself.
FOREIGN_WORDS = re.compile(
    r"/wo[r]k/|/tm[p]/|\.libr[a]ry/|(?i:\bthis sess[i]on\b|\bsess[i]ons? (of|that|before|after)\b"
    r"|\biss[u]e #?\d+|\bthe bri[e]f\b|\bpypi\.o[r]g|pythonhost[e]d\.org|deb\.deb[i]an\.org"
    r"|registry\.npm[j]s|\bclaud[e]\b)")
TEXT_SUFFIXES = {".h", ".cc", ".cu", ".cuh", ".py", ".md", ".txt", ".cmake", ".capnp", ".json",
                 ".sh", ".yml", ".toml", ".service", ""}
TODO_KINDS = {"soon", "perf", "test", "port"}
SKIPPED_FOLDERS = {".git", ".venv", ".cache", ".deps", "build", "models", "__pycache__"}
# What is compared byte for byte with someone else's words may say anything.
DATA_FOLDERS = re.compile(r"^tests/(golden|fuzz/corpus)/|(^|/)corpus/|(^|/)LICENSE$")


class File:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.lines = text.split("\n")
        if self.lines and self.lines[-1] == "":
            self.lines.pop()
        self.folder = path.split("/")[0]
        self.is_cpp = path.endswith((".h", ".cc", ".cu", ".cuh"))
        self.is_header = path.endswith((".h", ".cuh"))
        self.in_layer = self.folder in LAYERS
        # Only code that belongs to a folder of the layout has to look like C++ of the project.
        self.code = strip(text).split("\n") if self.is_cpp else []


def strip(text):
    """C++ without comments and the contents of literals; lines stay where they are."""
    token = re.compile(
        r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\s\\]{0,16})\(.*?\)(?P=mark)"'
        r'|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)

    def blank(match):
        found = match.group()
        body = "\n" * found.count("\n")
        return body if found.startswith("/") else '""' + body
    return token.sub(blank, text)


def read_project(root):
    """Every text file of the project, by path."""
    listing = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                             capture_output=True, text=True) if (root / ".git").exists() else None
    if listing is not None and listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
    else:
        names = []
        for place, folders, here in os.walk(root):
            folders[:] = [folder for folder in folders if folder not in SKIPPED_FOLDERS]
            names += [os.path.relpath(os.path.join(place, name), root) for name in here]
    files = {}
    for name in sorted(names):
        path = root / name
        if path.suffix not in TEXT_SUFFIXES or path.is_symlink() or not path.is_file():
            continue
        try:
            files[name] = File(name, path.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            continue  # not text
    return files


class Tidy:
    def __init__(self, files):
        self.files, self.findings = files, []

    def report(self, file, line, rule, advice):
        self.findings.append(f"{file.path}:{line}: {rule}: {advice}")

    def run(self):
        for file in self.files.values():
            if not DATA_FOLDERS.search(file.path):
                self.check_words(file)
                self.check_todo(file)
            if file.is_cpp and file.folder in CODE_FOLDERS:
                self.check_lines(file)
                self.check_banned(file)
                self.check_includes(file)
                self.check_functions(file)
            elif file.path.endswith(".md"):
                self.check_references(file)
        self.check_registered()
        self.check_dead_headers()
        return self.findings

    def check_words(self, file):
        for number, line in enumerate(file.lines, 1):
            if match := FOREIGN_WORDS.search(line):
                self.report(file, number, "foreign word",
                            f"`{match.group()}` is not of this project; say it without")

    def check_todo(self, file):
        if file.path.endswith((".md", "tidy.py", "tidy_test.py")):
            return
        for number, line in enumerate(file.lines, 1):
            for match in re.finditer(r"\b(TODO|FIXME|XXX)\b(\((\w+)\))?", line):
                if match.group(1) != "TODO" or match.group(3) not in TODO_KINDS:
                    self.report(file, number, "todo",
                                "do it now, or write TODO(kind) with one of: "
                                + ", ".join(sorted(TODO_KINDS)))

    def check_references(self, file):
        """Files that prose names exist. build/ is made, and x_ stands for any name."""
        folder = Path(file.path).parent
        for number, line in enumerate(file.lines, 1):
            named = [name for name in re.findall(r"`([\w.-]+(?:/[\w.-]+)+)/?`", line)
                     if name.split("/")[0] in CODE_FOLDERS | {"docs", "tools", "cmake"}
                     and "x_" not in name]
            linked = [os.path.normpath(folder / name) for name
                      in re.findall(r"\]\(([\w./-]+)\)", line)]
            for name in named + linked:
                if name not in self.files and not any(path.startswith(name + "/")
                                                      for path in self.files):
                    self.report(file, number, "dead reference", f"{name} does not exist")

    def check_line_length(self, file):
        for number, line in enumerate(file.lines, 1):
            if len(line) > LINE_MAX:
                self.report(file, number, "line length", f"at most {LINE_MAX} characters")

    def check_lines(self, file):
        self.check_line_length(file)
        most = HEADER_LINES_MAX if file.is_header else SOURCE_LINES_MAX
        if len(file.lines) > most:
            self.report(file, len(file.lines), "file length", f"at most {most} lines; split it")
        if file.is_header and "#pragma once" not in file.lines[:1]:
            self.report(file, 1, "pragma once", "the first line of a header is `#pragma once`")

    def check_banned(self, file):
        for number, line in enumerate(file.code, 1):
            for pattern, allowed, advice in BANNED:
                if (allowed is None or not re.search(allowed, file.path)) and \
                        (match := re.search(pattern, line)):
                    self.report(file, number, f"banned `{match.group().strip()}`", advice)

    def includes(self, file):
        for number, line in enumerate(file.lines, 1):
            if match := re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line):
                yield number, match.group(1), match.group(2)

    def check_includes(self, file):
        first = True
        own = file.path[:-3] + ".h" if file.path.endswith(".cc") else None
        own = own if own in self.files else None
        for number, kind, name in self.includes(file):
            if first and own and name != own:
                self.report(file, number, "own header first", f'begin with #include "{own}"')
            first = False
            for pattern, allowed, advice in INCLUDES:
                if re.search(pattern, name) and not re.search(allowed, file.path):
                    self.report(file, number, "wrong room for this include", advice)
                    break
            self.check_layer(file, number, kind, name)

    def check_layer(self, file, number, kind, name):
        target = "include" if name.startswith("troupe/") else name.split("/")[0]
        if "/" not in name or target not in CODE_FOLDERS:
            if kind == '"' and file.in_layer:
                self.report(file, number, "include path", "name the file from the project's root")
            elif file.folder == "include" and "/" in name and not name.startswith("sys/"):
                self.report(file, number, "public header",
                            "include/ uses the standard library only")
            return
        if file.folder in FREE_FOLDERS or target == file.folder:
            return
        if target in FREE_FOLDERS or LAYERS[target] >= LAYERS[file.folder]:
            self.report(file, number, "layer", f"{file.folder} may not use {target}")

    def check_functions(self, file):
        most = TEST_FUNCTION_LINES_MAX if file.folder in FREE_FOLDERS else FUNCTION_LINES_MAX
        for begin, end in functions(file.code):
            if end - begin + 1 > most:
                self.report(file, begin, "function length",
                            f"{end - begin + 1} lines, at most {most}; take a part out")

    def check_registered(self):
        """Every source and test is named in some CMakeLists.txt, or in cmake/ by its whole path."""
        registered, endings = set(), set()
        for file in self.files.values():
            if file.path.endswith(("CMakeLists.txt", ".cmake")):
                folder = os.path.dirname(file.path) if file.folder != "cmake" else ""
                for name in re.findall(r"(?<![\w./-])[\w./-]+\.(?:cc|cu)\b", file.text):
                    if name.startswith("/"):  # after a variable: ${somewhere}/x.cc
                        endings.add(name)
                    else:
                        registered.add(os.path.normpath(os.path.join(folder, name)))
        for file in self.files.values():
            if file.path.endswith((".cc", ".cu")) and file.folder in CODE_FOLDERS and \
                    file.path not in registered and \
                    not any(("/" + file.path).endswith(ending) for ending in endings):
                self.report(file, 1, "not registered", "name it in a CMakeLists.txt, or remove it")

    def check_dead_headers(self):
        users = defaultdict(set)
        for file in self.files.values():
            if file.is_cpp:
                for _, _, name in self.includes(file):
                    users[f"include/{name}" if name.startswith("troupe/") else name].add(file.path)
        for file in self.files.values():
            own = {file.path[:-2] + ".cc"}
            if file.is_header and file.folder in CODE_FOLDERS and not users[file.path] - own:
                self.report(file, 1, "dead header", "nobody includes it; use it or remove it")


def functions(code):
    """(first line, last line) of each function body outside other functions, by matching braces.

    A brace opens a function when a `)` stands between it and the last `;`, `{` or `}`, and no word
    that opens a scope does. Good enough for code that clang-format laid out."""
    stack, head, head_line, number = [], "", None, 0
    for number, line in enumerate(code, 1):
        if line.lstrip().startswith("#") or (number > 1 and code[number - 2].endswith("\\")):
            continue
        for char in line + "\n":
            if char == "{":
                scope = re.search(r"\b(namespace|class|struct|enum|union|extern)\b", head) and \
                    not re.search(r"\)\s*(const|noexcept|override|final|&|->.*|:.*)*\s*$", head)
                nested = "function" in (kind for kind, _ in stack)
                is_function = not nested and not scope and ")" in head
                stack.append(("function" if is_function else "scope", head_line or number))
                head, head_line = "", None
            elif char == "}":
                if stack:
                    kind, begin = stack.pop()
                    if kind == "function":
                        yield begin, number
                head, head_line = "", None
            elif char == ";":
                head, head_line = "", None
            else:
                if head_line is None and not char.isspace():
                    head_line = number
                head += char


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent)
    findings = Tidy(read_project(root)).run()
    for finding in findings:
        print(finding)
    print(f"tidy: {len(findings)} findings" if findings else "tidy: clean")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
