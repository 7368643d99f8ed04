#include "actors/gateway/tools/tool_grammar.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

Json text_format(std::string_view text) {
  return {{"type", "const_string"}, {"value", text}};
}

Json sequence_of(std::vector<Json> elements) {
  TROUPE_ASSERT(!elements.empty());
  if (elements.size() == 1) return std::move(elements[0]);
  return {{"type", "sequence"}, {"elements", std::move(elements)}};
}

Json one_of(std::vector<Json> elements) {
  TROUPE_ASSERT(!elements.empty());
  if (elements.size() == 1) return std::move(elements[0]);
  return {{"type", "or"}, {"elements", std::move(elements)}};
}

Json schema_format(Json schema) {
  return {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
}

// Writes the formats of one request. References outlive it.
class Writer final {
 public:
  Writer(const ToolRequest& request, const AnswerFormat& format)
      : request_(request), format_(format) {}

  // Nothing but calls.
  [[nodiscard]] Json forced_calls() const {
    const ToolFormat tools = format_.tools;
    if (tools == ToolFormat::kMistral) {
      return sequence_of(
          {text_format(std::string(kMistralOpen) + "["), listed_calls(", "), text_format("]")});
    }
    const std::string_view separator = tools == ToolFormat::kHermes   ? "\n"
                                       : tools == ToolFormat::kLlama3 ? "; "
                                                                      : "";
    return listed_calls(separator);
  }

  // Free text with calls in it.
  [[nodiscard]] Json free_calls() const {
    return {{"type", "triggered_tags"},
            {"triggers", triggers()},
            {"tags", tags()},
            {"at_least_one", false},
            {"stop_after_first", is_one_call(request_)}};
  }

  // The reasoning before `rest`, if the model reasons and has not done so already.
  [[nodiscard]] Json behind_reasoning(PromptEnd prompt_end, Json rest) const {
    if (format_.reasoning == ReasoningFormat::kNone || prompt_end == PromptEnd::kBehindReasoning) {
      return rest;
    }
    std::vector<Json> reasoning = {{{"type", "any_text"}, {"excludes", Json::array({kThinkClose})}},
                                   text_format(std::string(kThinkClose) + "\n\n")};
    if (prompt_end == PromptEnd::kBeforeAnswer) {
      reasoning.insert(reasoning.begin(), text_format(kThinkOpen));
      Json optional = {{"type", "optional"}, {"content", sequence_of(std::move(reasoning))}};
      reasoning.clear();
      reasoning.push_back(std::move(optional));
    }
    reasoning.push_back(std::move(rest));
    return sequence_of(std::move(reasoning));
  }

 private:
  [[nodiscard]] std::vector<const Tool*> callable() const {
    std::vector<const Tool*> out;
    for (const Tool& tool : request_.tools) {
      if (request_.choice != ToolChoice::kNamed || tool.name == request_.name) out.push_back(&tool);
    }
    TROUPE_ASSERT(!out.empty(), request_.name);
    return out;
  }

  [[nodiscard]] Json arguments(const Tool& tool) const {
    if (!holds_to_schema(request_, tool)) return schema_format({{"type", "object"}});
    return schema_format(tool.parameters);
  }

  [[nodiscard]] Json call(const Tool& tool) const {
    std::vector<Json> out = {text_format(call_begin(format_.tools, tool.name)), arguments(tool)};
    const std::string end = call_end(format_.tools);
    if (!end.empty()) out.push_back(text_format(end));
    return sequence_of(std::move(out));
  }

  [[nodiscard]] Json any_call() const {
    std::vector<Json> calls;
    for (const Tool* tool : callable()) calls.push_back(call(*tool));
    return one_of(std::move(calls));
  }

  [[nodiscard]] Json listed_calls(std::string_view separator) const {
    if (is_one_call(request_)) return any_call();
    std::vector<Json> next;
    if (!separator.empty()) next.push_back(text_format(separator));
    next.push_back(any_call());
    Json more = {{"type", "star"}, {"content", sequence_of(std::move(next))}};
    return sequence_of({any_call(), std::move(more)});
  }

  [[nodiscard]] Json triggers() const {
    if (format_.tools == ToolFormat::kHermes) return Json::array({kHermesOpen});
    if (format_.tools != ToolFormat::kLlama3) return Json::array({kMistralOpen});
    // Any shorter beginning would catch a JSON that is no call.
    Json out = Json::array();
    for (const Tool* tool : callable()) out.push_back("{\"name\": \"" + tool->name + "\"");
    return out;
  }

  [[nodiscard]] Json tags() const {
    if (format_.tools == ToolFormat::kMistral) {
      return Json::array({tag(std::string(kMistralOpen) + "[", listed_calls(", "), "]")});
    }
    Json out = Json::array();
    for (const Tool* tool : callable()) {
      out.push_back(
          tag(call_begin(format_.tools, tool->name), arguments(*tool), call_end(format_.tools)));
    }
    return out;
  }

  [[nodiscard]] static Json tag(std::string begin, Json content, std::string_view end) {
    return {{"type", "tag"},
            {"begin", std::move(begin)},
            {"content", std::move(content)},
            {"end", end}};
  }

  const ToolRequest& request_;
  const AnswerFormat& format_;
};

// A demand as a format of the structural tag.
Json demand_format(const GrammarSpec& demand) {
  switch (demand.kind) {
    case GrammarKind::kJsonObject:
      return schema_format({{"type", "object"}});
    case GrammarKind::kJsonSchema:
      return schema_format(Json::parse(demand.text));
    case GrammarKind::kRegex:
      return {{"type", "regex"}, {"pattern", demand.text}};
    case GrammarKind::kEbnf:
      return {{"type", "grammar"}, {"grammar", demand.text}};
    case GrammarKind::kChoice: {
      std::vector<Json> choices;
      for (const Json& choice : Json::parse(demand.text)) {
        choices.push_back(text_format(choice.get_ref<const std::string&>()));
      }
      return one_of(std::move(choices));
    }
    case GrammarKind::kStructuralTag:
    case GrammarKind::kNone:
      break;
  }
  TROUPE_ASSERT(false, static_cast<int>(demand.kind));
  return {};
}

}  // namespace

bool holds_to_schema(const ToolRequest& request, const Tool& tool) {
  switch (request.choice) {
    case ToolChoice::kNone:
      return false;
    case ToolChoice::kAuto:
      return tool.strict;
    case ToolChoice::kRequired:
      return true;
    case ToolChoice::kNamed:
      return tool.name == request.name;
  }
  TROUPE_ASSERT(false, static_cast<int>(request.choice));
  return false;
}

bool is_one_call(const ToolRequest& request) {
  return !request.parallel || request.choice == ToolChoice::kNamed;
}

GrammarSpec answer_grammar(const ToolRequest& request, const GrammarSpec& demand,
                           const AnswerFormat& format, PromptEnd prompt_end) {
  const Writer writer(request, format);
  const bool reasons =
      format.reasoning != ReasoningFormat::kNone && prompt_end != PromptEnd::kBehindReasoning;
  Json answer;
  if (!request.on()) {
    // A client that writes its own structural tag has thought of everything around it.
    if (demand.empty() || !reasons || demand.kind == GrammarKind::kStructuralTag) return demand;
    answer = demand_format(demand);
  } else if (request.choice != ToolChoice::kAuto) {
    answer = writer.forced_calls();
  } else if (!demand.empty() && demand.kind != GrammarKind::kStructuralTag) {
    answer = one_of({writer.forced_calls(), demand_format(demand)});
  } else {
    answer = writer.free_calls();
  }
  const Json tag = {{"type", "structural_tag"},
                    {"format", writer.behind_reasoning(prompt_end, std::move(answer))}};
  return {GrammarKind::kStructuralTag, tag.dump()};
}

}  // namespace troupe
