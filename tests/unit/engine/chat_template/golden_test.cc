// Compares with what Python's jinja2 made of the same templates and conversations
// (tools/make_chat_template_goldens.py).
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/chat_template/chat_template.h"
#include "engine/chat_template/value_json.h"
#include "engine/model/gguf_file.h"
#include "tests/unit/engine/chat_template/render_support.h"

namespace {

using Json = nlohmann::ordered_json;
using namespace troupe;
using chat_template_test::joined;

const std::string kFolder = TROUPE_SOURCE_DIR "/tests/golden/chat_template/";

std::string read_file(const std::string& name) {
  std::ifstream file(kFolder + name, std::ios::binary);
  BOOST_REQUIRE_MESSAGE(file, "cannot open " << kFolder << name);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A template of ours, or the one in the shipped model's file.
std::string template_source(const std::string& name) {
  if (name != "the model's own") return read_file("templates/" + name);
  const auto model = GgufFile::open(TROUPE_SOURCE_DIR "/models/SmolLM2-135M-Instruct.Q4_1.gguf");
  BOOST_REQUIRE_MESSAGE(model.ok(), model.status().message() << "; ./serve or ./test fetches it");
  return std::string(model.value()->get_string("tokenizer.chat_template").value());
}

// Holds if our rendering agrees with the case: the same text, the same raised words, or any
// failure.
void check_case(const Json& golden, const std::string& name, const std::string& source,
                const Json& context, int64_t unix_seconds) {
  const Result<TemplateValue> variables = template_value_from_json(context);
  BOOST_REQUIRE(variables.ok());
  Result<std::vector<TemplatePiece>> rendered = Status(StatusCode::kInternal, "not run");
  const Result<ChatTemplate> compiled = ChatTemplate::compile(source);
  if (compiled.ok()) {
    rendered = compiled.value().render(variables.value(), unix_seconds);
  } else {
    rendered = compiled.status();
  }
  const std::string got =
      rendered.ok() ? joined(rendered.value()) : "error: " + rendered.status().message();
  if (golden.contains("text")) {
    BOOST_CHECK_MESSAGE(
        rendered.ok() && got == golden["text"].get<std::string>(),
        name << "\nexpected: " << golden["text"].dump() << "\ngot:      " << Json(got).dump());
  } else if (golden.contains("raised")) {
    BOOST_CHECK_MESSAGE(
        !rendered.ok() && rendered.status() == invalid_argument(golden["raised"]),
        name << "\nexpected to raise: " << golden["raised"].dump() << "\ngot: " << got);
  } else {
    BOOST_CHECK_MESSAGE(!rendered.ok(), name << "\nexpected to fail with: "
                                             << golden["failed"].dump() << "\ngot: " << got);
    BOOST_CHECK_MESSAGE(rendered.ok() || got.find("chat template line ") != std::string::npos,
                        name << "\nnames no line: " << got);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chat_template_golden)

BOOST_AUTO_TEST_CASE(conversations_render_as_in_jinja2) {
  const Json golden = Json::parse(read_file("conversations.json"));
  BOOST_REQUIRE_GE(golden["cases"].size(), 500u);
  std::map<std::string, std::string> sources;
  for (const Json& one : golden["cases"]) {
    const std::string file = one["file"];
    if (!sources.contains(file)) sources[file] = template_source(file);
    const std::string messages = one["messages"];
    const std::string option = one["context"];
    Json context = golden["contexts"][option];
    context["messages"] = golden["conversations"][messages];
    check_case(one, file + ": " + messages + ", " + option, sources[file], context,
               golden["unix_seconds"]);
  }
}

BOOST_AUTO_TEST_CASE(small_templates_render_as_in_jinja2) {
  const Json golden = Json::parse(read_file("snippets.json"));
  BOOST_REQUIRE_GE(golden["cases"].size(), 300u);
  for (const Json& one : golden["cases"]) {
    check_case(one, one["source"].dump(), one["source"], golden["context"], golden["unix_seconds"]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
