// Renders chat templates for tests in other languages. Standard input: one JSON object
//   {"unix_seconds": 0, "templates": {name: source}, "contexts": {name: variables},
//    "cases": [[template, context], …]}
// Standard output: one JSON line per case, {"pieces": [[text, from_template], …]} or
// {"error": message}. bos_token and eos_token count as the template's own text.

#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/chat_template/chat_template.h"
#include "engine/chat_template/value_json.h"

namespace {

using namespace troupe;
using Json = nlohmann::ordered_json;

Result<TemplateValue> context_of(const Json& variables) {
  std::vector<std::pair<std::string, TemplateValue>> entries;
  for (const auto& [name, json] : variables.items()) {
    if ((name == "bos_token" || name == "eos_token") && json.is_string()) {
      entries.emplace_back(name, TemplateValue::markup(json.get<std::string>()));
      continue;
    }
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, template_value_from_json(json));
    entries.emplace_back(name, std::move(value));
  }
  return TemplateValue::dict(std::move(entries));
}

Json answer(const Result<ChatTemplate>& compiled, const Json& variables, int64_t unix_seconds) {
  if (!compiled.ok()) return {{"error", compiled.status().message()}};
  const Result<TemplateValue> context = context_of(variables);
  if (!context.ok()) return {{"error", context.status().message()}};
  const auto rendered = compiled.value().render(context.value(), unix_seconds);
  if (!rendered.ok()) return {{"error", rendered.status().message()}};
  Json pieces = Json::array();
  for (const TemplatePiece& piece : rendered.value()) {
    pieces.push_back(Json::array({piece.text, piece.from_template}));
  }
  return {{"pieces", std::move(pieces)}};
}

}  // namespace

int main() {
  const std::string input((std::istreambuf_iterator<char>(std::cin)), {});
  const Json work = Json::parse(input, nullptr, false);
  if (work.is_discarded()) {
    std::cerr << "render_templates: standard input is no JSON\n";
    return 2;
  }
  std::map<std::string, Result<ChatTemplate>> templates;
  for (const auto& [name, source] : work.at("templates").items()) {
    templates.emplace(name, ChatTemplate::compile(source.get<std::string>()));
  }
  for (const Json& one : work.at("cases")) {
    const Json& variables = work.at("contexts").at(one.at(1).get<std::string>());
    std::cout << answer(templates.at(one.at(0).get<std::string>()), variables,
                        work.at("unix_seconds").get<int64_t>())
              << '\n';
  }
  return 0;
}
