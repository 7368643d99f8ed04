// Renders chat templates for tests in other languages. Standard input: one JSON object
//   {"unix_seconds": 0, "templates": {name: source}, "contexts": {name: variables},
//    "cases": [[template, context], …], "habits": [template, …]}
// Standard output: one JSON line per case, {"pieces": [[text, from_template], …]} or
// {"error": message}; then one per template whose habits are asked for, with what is out of the
// ordinary, e.g. ["drops_tools", "user_takes_parts"]. bos_token and eos_token count as the
// template's own text.

#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "engine/chat_template/chat_template.h"
#include "engine/chat_template/template_habits.h"
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

Json habits_of(const Result<ChatTemplate>& compiled) {
  if (!compiled.ok()) return {{"error", compiled.status().message()}};
  ChatContextOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  const TemplateHabits habits = find_habits(compiled.value(), options);
  Json names = Json::array();
  const auto add = [&names](bool holds, const std::string& name) {
    if (holds) names.push_back(name);
  };
  add(habits.drops_system, "drops_system");
  add(habits.drops_later_system, "drops_later_system");
  add(habits.drops_tools, "drops_tools");
  add(habits.drops_tool_calls, "drops_tool_calls");
  add(habits.drops_tool_results, "drops_tool_results");
  add(habits.wants_arguments_as_text, "wants_arguments_as_text");
  add(habits.wants_content_none, "wants_content_none");
  for (const auto& [role, content] :
       {std::pair{"system", habits.system}, std::pair{"user", habits.user},
        std::pair{"assistant", habits.assistant}, std::pair{"tool", habits.tool}}) {
    add(content.takes_parts, std::string(role) + "_takes_parts");
    add(!content.takes_text, std::string(role) + "_takes_no_text");
  }
  return names;
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
  for (const Json& name : work.value("habits", Json::array())) {
    std::cout << habits_of(templates.at(name.get<std::string>())) << '\n';
  }
  return 0;
}
