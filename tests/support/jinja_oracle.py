"""Chat templates as Hugging Face's transformers renders them: jinja2 in the same environment."""

import datetime
import json

from jinja2 import TemplateSyntaxError, UndefinedError, ext, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment

UNIX_SECONDS = 1721952000 + 12345  # 2024-07-26 03:25:45 UTC: what strftime_now() shows


class Raised(Exception):
    """The template called raise_exception()."""


class Generation(ext.Extension):
    """{% generation %} only marks text; it prints its body, which has a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return nodes.Scope(body, lineno=line)


def environment(is_mutable=False):
    """is_mutable: lists and dicts have the methods that change them, which transformers refuses."""
    def raise_exception(message):
        raise Raised(str(message))

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def strftime_now(text):
        return datetime.datetime.fromtimestamp(UNIX_SECONDS, datetime.timezone.utc).replace(
            tzinfo=None).strftime(text)

    kind = SandboxedEnvironment if is_mutable else ImmutableSandboxedEnvironment
    made = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, ext.loopcontrols])
    made.filters["tojson"] = tojson
    # What this product does otherwise (docs/chat-templates.md): safe marks nothing, so that no text
    # is ever escaped for HTML, and there is llama.cpp's from_json.
    made.filters["safe"] = str
    made.filters["from_json"] = json.loads
    made.globals["raise_exception"] = raise_exception
    made.globals["strftime_now"] = strftime_now
    return made


def line_of(error):
    """The template's line that an error comes from; None where jinja2 does not say."""
    if isinstance(error, TemplateSyntaxError):
        return error.lineno
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def outcome(template, context):
    """{"text"}, {"raised": the template's own words} or {"failed": kind and text, "line", ...}."""
    try:
        return {"text": template.render(**context)}
    except Raised as raised:
        return {"raised": str(raised)}
    except Exception as error:  # the kind of Python exception means nothing to other renderers
        return {"failed": type(error).__name__ + ": " + str(error), "line": line_of(error),
                "is_undefined": isinstance(error, UndefinedError)}
