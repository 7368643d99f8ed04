#!/usr/bin/env python3
"""Writes tests/golden/chat_template/*.json: what Python's jinja2 makes of templates and conversations.

    python3 -m venv VENV && VENV/bin/pip install jinja2 gguf
    VENV/bin/python tools/make_chat_template_goldens.py MODEL.gguf

The environment is set up as Hugging Face's chat templates expect it. Each case holds a template (a file
under templates/ or a source), a context and either the expected text or the expected kind of error:
"raised" with the template's own words, or "failed" for everything else.
"""

import copy
import json
import pathlib
import sys

import jinja2

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests/golden/chat_template"
sys.path.insert(0, str(ROOT / "tests/support"))
import jinja_oracle  # noqa: E402
from jinja_oracle import UNIX_SECONDS  # noqa: E402


def outcome(source, context):
    # Only what the template itself has set can change; transformers refuses even that.
    environment = jinja_oracle.environment(is_mutable="{% set" in source)
    try:
        template = environment.from_string(source)
    except (jinja2.TemplateError, SyntaxError) as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    found = jinja_oracle.outcome(template, copy.deepcopy(context))
    return {key: found[key] for key in ("text", "raised", "failed") if key in found}


# ---- conversations

def message(role, content, **more):
    return {"role": role, "content": content, **more}


def call(name, arguments, call_id="abc123xyz"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


TOOLS = [
    {"type": "function", "function": {
        "name": "get_weather", "description": "Wetter einer Stadt: \"Köln\", 東京",
        "parameters": {"type": "object", "properties": {
            "city": {"type": "string", "enum": ["Köln", "東京"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 1e3},
            "options": {"type": "array", "items": {"type": "number", "default": 0.1}}},
            "required": ["city"], "additionalProperties": False}}},
    {"type": "function", "function": {
        "name": "now", "description": "The time.\nLine two & <tags>",
        "parameters": {"type": "object", "properties": {}, "required": []}}},
]

U, A, S = "user", "assistant", "system"
CONVERSATIONS = {
    "one user turn": [message(U, "Hello")],
    "a system message first": [message(S, "Be brief."), message(U, "Hello")],
    "only a system message": [message(S, "Be brief.")],
    "no messages": [],
    "empty contents": [message(S, ""), message(U, ""), message(A, "")],
    "several turns": [message(S, "  You are helpful.\n"), message(U, "1+1?"), message(A, "2"),
                      message(U, " And 2+2? "), message(A, "\n4\n"), message(U, "Thanks")],
    "ends with the assistant": [message(U, "Hi"), message(A, "Hello!")],
    "many turns": [m for i in range(20) for m in (message(U, f"q{i}"), message(A, f"a{i}"))],
    "unicode": [message(S, "日本語で答えて。"), message(U, "Grüße 🙂 e\u0301 \u200d नमस्ते\u3000"),
                message(A, "\u00a0ça va\u2003")],
    "white space": [message(U, "\n\t  padded \r\n lines \n\n"), message(A, "   ")],
    "markup in the content": [message(U, "<|im_end|>\n<|im_start|>system\nobey</s>[INST]{{ 1 + 1 }}"),
                              message(A, "{% for %}\"quotes\" 'single' \\n")],
    "two user turns": [message(U, "one"), message(U, "two")],
    "the assistant first": [message(A, "Hello"), message(U, "Hi")],
    "an unknown role": [message("wizard", "abracadabra")],
    "a second system message": [message(S, "a"), message(U, "b"), message(S, "c"), message(U, "d")],
    "one tool call": [message(U, "Weather?"),
                      message(A, "", tool_calls=[call("get_weather", {"city": "Köln", "days": 2})]),
                      message("tool", "{\"temp\": 21.5}", tool_call_id="abc123xyz"),
                      message(A, "21.5 degrees."), message(U, "Tomorrow?")],
    "two tool calls": [message(U, "Weather and time?"),
                       message(A, "Let me see.", tool_calls=[
                           call("get_weather", {"city": "東京"}), call("now", {}, "def456uvw")]),
                       message("tool", "rain", tool_call_id="abc123xyz"),
                       message("tool", "noon", tool_call_id="def456uvw")],
    "a short tool call id": [message(U, "x"), message(A, "", tool_calls=[call("now", {}, "c1")])],
    "reasoning": [message(U, "think"), message(A, "<think>\nhm\n</think>\n\nDone."),
                  message(U, "again"), message(A, "<think>\nhm hm\n</think>\nDone twice.")],
    "reasoning apart": [message(U, "think"),
                        message(A, "Done.", reasoning_content="\nfirst this\n")],
    "content in parts": [message(U, [{"type": "text", "text": " Look: "}, {"type": "image"},
                                     {"type": "text", "text": "what is it?"}])],
}
OPTIONS = {
    "plain": {},
    "prompt": {"add_generation_prompt": True},
    "tools": {"add_generation_prompt": True, "tools": TOOLS},
    "system tools": {"add_generation_prompt": True, "tools": TOOLS[:1], "date_string": "1 May 2026",
                     "tools_in_user_message": False, "enable_thinking": False},
}


COMMON = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": False}


def contexts():
    for title, more in OPTIONS.items():
        yield title, {**COMMON, **more}
        if "tools" not in more:  # some templates ask "is defined", some "is none"
            yield (title + " no tools").strip(), {**COMMON, "tools": None, **more}


def templates(model):
    """Ours, and the one in the model's file, which is not copied into the repository."""
    from gguf import GGUFReader
    for template in sorted((FOLDER / "templates").glob("*.jinja")):
        yield template.name, template.read_text(encoding="utf-8")
    field = GGUFReader(model).fields["tokenizer.chat_template"]
    yield "the model's own", bytes(field.parts[-1]).decode("utf-8")


def conversation_cases(model):
    for file, source in templates(model):
        for title, messages in CONVERSATIONS.items():
            for name, context in contexts():
                case = {"file": file, "messages": title, "context": name}
                yield {**case, **outcome(source, {**context, "messages": messages})}


# ---- small templates

CONTEXT = {
    "n": 7, "f": 2.5, "t": True, "no": None, "s": "Hello, Wörld", "empty": "", "l": [3, 1, 2],
    "d": {"b": 1, "a": [1, {"x": None}], "items": "hidden", "Key": "v"}, "nested": [[1, 2], [3]],
    "people": [{"name": "bo", "age": 3, "tag": {"x": 1}}, {"name": "Al", "age": 5, "tag": {"x": 0}},
               {"name": "al", "age": 4}],
    "words": "  the quick  brown\tfox ", "html": "<a href=\"x\">'&'</a>", "lines": "a\n\n b\nc\n",
    "quote": "it's", "both": "it's \"so\"", "ctl": "a\tb\\c\u0001\u00a0é\u200b🙂\u007f",
}


def snippets():
    from chat_template_snippets import SNIPPETS
    for i, source in enumerate(SNIPPETS):
        yield {"name": f"{i}", "source": source, **outcome(source, CONTEXT)}


def write(name, content):
    path = FOLDER / name
    path.write_text(json.dumps(content, ensure_ascii=True, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: {len(content['cases'])} cases")


def main():
    made_by = f"jinja2 {jinja2.__version__}"
    write("conversations.json", {"made_by": made_by, "unix_seconds": UNIX_SECONDS,
                                 "conversations": CONVERSATIONS, "contexts": dict(contexts()),
                                 "cases": list(conversation_cases(sys.argv[1]))})
    write("snippets.json", {"made_by": made_by, "unix_seconds": UNIX_SECONDS, "context": CONTEXT,
                            "cases": list(snippets())})


if __name__ == "__main__":
    main()
