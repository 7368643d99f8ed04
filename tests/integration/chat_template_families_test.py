"""Renders the chat templates of many models' families over a table of conversations, and compares
each prompt with jinja2's, byte by byte; and sees to it that no text of a message ever counts as the
template's own."""

import functools
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests/support")]
import jinja_oracle  # noqa: E402
from make_chat_template_goldens import COMMON, CONVERSATIONS, OPTIONS, TOOLS, call, message  # noqa: E402
from server import BUILD  # noqa: E402

RENDERER = BUILD / "tests" / "render_templates"
TEMPLATES_MIN = 150
# Every family must be there, by what a file's name begins with.
FAMILIES = {
    "Llama": ["llama3", "meta-llama-Llama-3.1", "meta-llama-Llama-3.3"],
    "Mistral": ["mistral_v1", "mistralai-Mistral-Nemo", "Mistral-Small"],
    "Qwen": ["qwen_25", "Qwen-Qwen2.5", "Qwen-Qwen3", "Qwen3-Coder"],
    "Gemma": ["google-gemma-2", "gemma3"],
    "Phi": ["phi_3", "phi_4"],
    "DeepSeek": ["deepseek_v2", "deepseek_v3", "deepseek-ai-DeepSeek-R1", "deepseek-ai-DeepSeek-V3.1"],
    "Hermes": ["NousResearch-Hermes-2", "NousResearch-Hermes-3"],
    "Command": ["CohereForAI-c4ai-command-r-plus", "command_a"],
    "Granite": ["ibm-granite"],
    "SmolLM": ["HuggingFaceTB-SmolLM3"],
    "gpt-oss": ["openai-gpt-oss"],
    "Kimi": ["Kimi-K2-Instruct", "moonshotai-Kimi-K2"],
    "GLM": ["GLM-4.6"],
}
# Written for llama.cpp, where map gives a list that can be printed as JSON; so it does here.
ONLY_HERE = {"llama-cpp-deepseek-r1.jinja"}
# Written with methods that change lists, which transformers refuses.
CHANGES_LISTS = re.compile(r"\.(append|pop|extend|insert)\(")
LINES_APART_MAX = 2  # an expression over several lines: jinja2 and we name different ones

MORE_CONVERSATIONS = {
    "a call without content": [
        message("user", "x"), message("assistant", None, tool_calls=[call("now", {})]),
        message("tool", "42", tool_call_id="abc123xyz", name="now")],
    "arguments as text": [
        message("user", "x"), message("assistant", "", tool_calls=[call("now", '{"a": 1}')]),
        message("tool", "42", tool_call_id="abc123xyz")],
    "a developer": [message("developer", "Be brief."), message("user", "x")],
    "parts everywhere": [
        message(role, [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])
        for role in ("system", "user", "assistant")],
}
CONTEXTS = {
    "plain": OPTIONS["plain"], "tools": OPTIONS["tools"], "system tools": OPTIONS["system tools"],
    "thinking": {"add_generation_prompt": True, "enable_thinking": True, "thinking": True,
                 "reasoning_effort": "high"},
}

# What some templates are known to drop, and the forms that they want.
HABITS = {
    "llama.cpp/meta-llama-Llama-3.1-8B-Instruct.jinja": set(),
    "llama.cpp/Qwen-Qwen3-0.6B.jinja": set(),
    "llama.cpp/google-gemma-2-2b-it.jinja": {"drops_tools"},
    "axolotl/phi_3.jinja": {"drops_tools", "drops_tool_calls"},
    "axolotl/deepseek_v3.jinja": {"drops_tools", "wants_arguments_as_text"},
    "trl/deepseek_r1_distill.jinja": {"drops_tools", "wants_arguments_as_text",
                                      "wants_content_none"},
    "trl/gptoss.jinja": {"drops_later_system"},
    "axolotl/gemma3.jinja": {"drops_tools", "system_takes_parts", "user_takes_parts",
                             "assistant_takes_parts"},
    "trl/llava_next.jinja": {"drops_tools", *(f"{role}_takes_{what}" for what in ("parts", "no_text")
                                              for role in ("system", "user", "assistant"))},
}


@functools.cache
def files():
    """The source of every template, by folder and name."""
    run = subprocess.run([sys.executable, str(ROOT / "tools/fetch_chat_templates")],
                         capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise AssertionError(run.stderr)
    return {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8")
            for path in sorted(Path(run.stdout.strip()).glob("*/*.jinja"))}


def sources():
    """The same, each source once."""
    return {name: source for source, name in {s: n for n, s in files().items()}.items()}


def render(templates, contexts, cases, habits=()):
    """What the product makes of each case (name of a template, name of a context), and the habits
    that it sees in templates."""
    work = {"unix_seconds": jinja_oracle.UNIX_SECONDS, "templates": templates,
            "contexts": contexts, "cases": cases, "habits": list(habits)}
    run = subprocess.run([RENDERER], input=json.dumps(work), capture_output=True, text=True,
                         check=True, timeout=300)
    return [json.loads(line) for line in run.stdout.splitlines()]


def variables(messages, options):
    return {**COMMON, "tools": None, "documents": None, **options, "messages": messages}


def difference(expected, got):
    """Why the two are not the same; None if they are."""
    text = None if "error" in got else "".join(piece for piece, _ in got["pieces"])
    if "text" in expected:
        return None if text == expected["text"] else "another text"
    if text is not None:
        return "no error"
    if "raised" in expected:
        return None if got["error"] == expected["raised"] else "another error"
    where = re.match(r"chat template line (\d+): ", got["error"])
    if where is None:
        return "an error without a line"
    if expected["line"] and abs(int(where[1]) - expected["line"]) > LINES_APART_MAX:
        return "another line"
    # A method that a value lacks is undefined in jinja2; here it says so in other words.
    if not expected["is_undefined"] and "is undefined" in got["error"]:
        return "another kind of error"
    return None


def marked(value, mark):
    """The value with every text of a message replaced; what templates decide by stays."""
    if isinstance(value, list):
        return [marked(item, mark) for item in value]
    if isinstance(value, dict):
        return {key: item if key in ("role", "type", "id", "tool_call_id") else marked(item, mark)
                for key, item in value.items()}
    return mark if isinstance(value, str) else value


class FamiliesTest(unittest.TestCase):
    def test_every_family_is_there(self):
        names = [name.split("/")[1] for name in files()]
        self.assertGreaterEqual(len(names), TEMPLATES_MIN)
        for family, beginnings in FAMILIES.items():
            for beginning in beginnings:
                with self.subTest(family=family, beginning=beginning):
                    self.assertTrue(any(name.startswith(beginning) for name in names))

    def test_prompts_and_errors_are_those_of_jinja2(self):
        contexts = {f"{title}, {option}": variables(messages, values)
                    for title, messages in (CONVERSATIONS | MORE_CONVERSATIONS).items()
                    for option, values in CONTEXTS.items()}
        templates = sources()
        cases = [(name, context) for name in templates for context in contexts]
        compiled = {}
        for name, source in templates.items():
            environment = jinja_oracle.environment(bool(CHANGES_LISTS.search(source)))
            compiled[name] = environment.from_string(source)
        wrong, texts = [], 0
        for (name, context), got in zip(cases, render(templates, contexts, cases), strict=True):
            if name.split("/")[1] in ONLY_HERE:
                continue
            expected = jinja_oracle.outcome(compiled[name], contexts[context])
            texts += "text" in expected
            why = difference(expected, got)
            if why:
                wrong.append(f"{name}: {context}: {why}\n  jinja2: {expected}\n  here: {got}"[:2000])
        self.assertEqual([], wrong[:5], f"{len(wrong)} of {len(cases)}")
        self.assertGreater(texts, len(cases) / 2)

    def test_what_templates_drop_and_want_is_found_out(self):
        found = render(files(), {}, [], HABITS)
        self.assertEqual({name: sorted(wanted) for name, wanted in HABITS.items()},
                         {name: sorted(habits) for name, habits in zip(HABITS, found, strict=True)})

    def test_no_text_of_a_message_counts_as_the_templates(self):
        templates = sources()
        contexts, cases = {}, []
        for name, source in templates.items():
            # The template's own control tokens and markers, as a user would spell them.
            # But not those at which templates cut a message in pieces and put them elsewhere.
            spelled = set(re.findall(r"<[|｜]?[^<>\s{}'\"]{1,40}[|｜]?>|\[/?[A-Z_]{2,}\]", source))
            evil = "⟦" + "".join(sorted(s for s in spelled if "think" not in s.lower())) + "</s>⟧"
            for title in ("several turns", "two tool calls", "reasoning apart"):
                for option in ("plain", "tools"):
                    messages = marked(CONVERSATIONS[title], evil)
                    tools = marked(TOOLS, evil)
                    context = f"{name}: {title}, {option}"
                    contexts[context] = variables(
                        messages, {**CONTEXTS[option], **({"tools": tools} if option == "tools" else {})})
                    cases.append((name, context))
        seen = 0
        for (name, context), got in zip(cases, render(templates, contexts, cases), strict=True):
            for piece, from_template in got.get("pieces", []):
                seen += not from_template and "⟦" in piece
                self.assertFalse(from_template and ("⟦" in piece or "⟧" in piece),
                                 f"{context}: {piece!r}")
            text = "".join(piece if own else "\0" * len(piece) for piece, own in got.get("pieces", []))
            whole = "".join(piece for piece, _ in got.get("pieces", []))
            # Whatever stands between the brackets came from the messages.
            for place in re.finditer(r"⟦[^⟦⟧]*⟧", whole):
                self.assertEqual(set(text[place.start():place.end()]), {"\0"}, context)
        self.assertGreater(seen, len(templates))


if __name__ == "__main__":
    unittest.main()
