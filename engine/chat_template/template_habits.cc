#include "engine/chat_template/template_habits.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

// Words that stand in no template.
constexpr const char* kSystem = "Zqsystem";
constexpr const char* kUser = "Zquser";
constexpr const char* kResult = "Zqresult";
constexpr const char* kTool = "zqtool";
constexpr const char* kKey = "zqkey";
constexpr const char* kParameter = "zqparameter";  // of the tool; not kKey, to be told apart
constexpr const char* kCallId = "zq1234567";  // Mistral's templates want nine letters and digits

ChatTemplateLimits probe_limits() {
  ChatTemplateLimits limits;
  limits.steps_max = 200'000;
  limits.output_bytes_max = 1 << 20;
  limits.work_bytes_max = 8 << 20;
  return limits;
}

TemplateValue text(const char* value) {
  return TemplateValue::data(value);
}

TemplateValue parts(const char* value) {
  return TemplateValue::list(
      {TemplateValue::dict({{"type", text("text")}, {"text", text(value)}})});
}

ChatMessage message(const char* role, TemplateValue content) {
  ChatMessage out;
  out.role = role;
  out.content = std::move(content);
  return out;
}

TemplateValue tool_list() {
  const TemplateValue parameters = TemplateValue::dict(
      {{"type", text("object")},
       {"properties",
        TemplateValue::dict(
            {{kParameter, TemplateValue::dict(
                              {{"type", text("string")}, {"description", text("Zqparameter")}})}})},
       {"required", TemplateValue::list({text(kParameter)})}});
  const TemplateValue function = TemplateValue::dict(
      {{"name", text(kTool)}, {"description", text("Zqtool")}, {"parameters", parameters}});
  return TemplateValue::list(
      {TemplateValue::dict({{"type", text("function")}, {"function", function}})});
}

enum class Arguments { kDict, kText };

// The user asks, the assistant calls a tool, which answers.
std::vector<ChatMessage> call_conversation(TemplateValue content, Arguments form,
                                           TemplateValue result) {
  const TemplateValue arguments = form == Arguments::kDict
                                      ? TemplateValue::dict({{kKey, text("Zqvalue")}})
                                      : text(R"({"zqkey": "Zqvalue"})");
  const TemplateValue function =
      TemplateValue::dict({{"name", text(kTool)}, {"arguments", arguments}});
  std::vector<ChatMessage> out = {message("user", text(kUser)),
                                  message("assistant", std::move(content)),
                                  message("tool", std::move(result))};
  out[1].tool_calls = TemplateValue::list({TemplateValue::dict(
      {{"id", text(kCallId)}, {"type", text("function")}, {"function", function}})});
  out[2].tool_call_id = kCallId;
  out[2].name = kTool;
  return out;
}

// What came out of the conversation; nothing after an error.
struct Rendered {
  std::string data;  // without the template's own text
  size_t bytes;      // of all text
};
using Trace = std::optional<Rendered>;

bool shows(const Trace& trace, std::string_view word) {
  return trace && trace->data.find(word) != std::string::npos;
}
bool drops(const Trace& trace, std::string_view word) {
  return trace && !shows(trace, word);
}

class Prober {
 public:
  Prober(const ChatTemplate& chat_template, const ChatContextOptions& options)
      : template_(chat_template), options_(options) {}

  TemplateHabits run() {
    probe_system();
    probe_tools();
    probe_calls();
    if (template_.traits().content_format() != ContentFormat::kText) probe_contents();
    return habits_;
  }

 private:
  using Messages = std::vector<ChatMessage>;
  enum class Tools { kAbsent, kGiven };

  [[nodiscard]] Trace render(const std::vector<ChatMessage>& messages,
                             Tools tools = Tools::kAbsent) const {
    ChatContextOptions options = options_;
    options.tools = tools == Tools::kGiven ? tool_list() : TemplateValue();
    const auto pieces = template_.render(make_chat_context(messages, options), 0, probe_limits());
    if (!pieces.ok()) return std::nullopt;
    Rendered out{"", 0};
    for (const TemplatePiece& piece : pieces.value()) {
      out.bytes += piece.text.size();
      if (!piece.from_template) out.data += piece.text;
    }
    return out;
  }

  void probe_system() {
    const bool takes_parts = template_.traits().content_format() != ContentFormat::kText;
    const auto is_dropped = [&](auto conversation) {
      return drops(render(conversation(text(kSystem))), kSystem) &&
             !(takes_parts && shows(render(conversation(parts(kSystem))), kSystem));
    };
    habits_.drops_system = is_dropped([this](TemplateValue content) {
      return Messages{message("system", std::move(content)), message("user", user_content())};
    });
    habits_.drops_later_system = is_dropped([this](TemplateValue content) {
      return Messages{message("user", user_content()), message("assistant", user_content()),
                      message("system", std::move(content)), message("user", user_content())};
    });
  }

  void probe_tools() {
    const ChatMessage user = message("user", text(kUser));
    const Trace alone = render({user}, Tools::kGiven);
    const Trace with_system = render({message("system", text(kSystem)), user}, Tools::kGiven);
    const bool is_shown = shows(alone, kTool) || shows(with_system, kTool);
    habits_.drops_tools = !is_shown && (alone || with_system);
  }

  // Whether a call stands in the trace as it should: its arguments neither missing, nor a dict as
  // Python prints it, nor JSON inside a JSON string; and no None for the missing content.
  static bool is_good_call(const Trace& trace) {
    return shows(trace, kTool) && shows(trace, kKey) && !shows(trace, "'zqkey'") &&
           !shows(trace, R"(\"zqkey)") && !shows(trace, "None");
  }

  // "" comes before none, and a dict before text, except where the other way prints less: templates
  // that do not expect "" write an empty turn for it.
  void probe_calls() {
    bool is_rendered = false;
    Trace best;
    for (const Arguments form : {Arguments::kDict, Arguments::kText}) {
      for (const bool is_none : {false, true}) {
        const TemplateValue content = is_none ? TemplateValue::none() : text("");
        Trace trace = render(call_conversation(content, form, text(kResult)), Tools::kGiven);
        is_rendered = is_rendered || trace.has_value();
        if (!is_good_call(trace) || (best && best->bytes <= trace->bytes)) continue;
        best = std::move(trace);
        habits_.wants_arguments_as_text = form == Arguments::kText;
        habits_.wants_content_none = is_none;
      }
      if (best) break;
    }
    habits_.drops_tool_results = drops(best, kResult);
    habits_.drops_tool_calls = is_rendered && !best;
  }

  // Whether the content came out, and not as a list is printed.
  static bool is_good_content(const Trace& trace, const char* word) {
    return shows(trace, word) && !shows(trace, "'type'") && !shows(trace, R"("type")");
  }

  template <class Conversation>
  void probe_content(TemplateHabits::Content& role, const char* word, Conversation conversation) {
    const bool takes_parts = is_good_content(render(conversation(parts(word))), word);
    const bool takes_text = is_good_content(render(conversation(text(word))), word);
    // Where nothing works, e.g. because the role is refused, text is what the error is about.
    role = {takes_text || !takes_parts, takes_parts};
  }

  void probe_contents() {
    probe_content(habits_.system, kSystem, [this](TemplateValue content) {
      return Messages{message("system", std::move(content)), message("user", user_content())};
    });
    probe_content(habits_.user, kUser, [](TemplateValue content) {
      return Messages{message("user", std::move(content))};
    });
    probe_content(habits_.assistant, "Zqanswer", [this](TemplateValue content) {
      return Messages{message("user", user_content()), message("assistant", std::move(content)),
                      message("user", user_content())};
    });
    probe_content(habits_.tool, kResult, [this](TemplateValue content) {
      Messages messages =
          call_conversation(habits_.wants_content_none ? TemplateValue::none() : text(""),
                            habits_.wants_arguments_as_text ? Arguments::kText : Arguments::kDict,
                            std::move(content));
      messages[0].content = user_content();
      return messages;
    });
  }

  // Of the messages beside the one in question.
  [[nodiscard]] TemplateValue user_content() const {
    return template_.traits().content_format() == ContentFormat::kParts ? parts("x") : text("x");
  }

  const ChatTemplate& template_;
  const ChatContextOptions& options_;
  TemplateHabits habits_;
};

}  // namespace

TemplateHabits find_habits(const ChatTemplate& chat_template, const ChatContextOptions& options) {
  return Prober(chat_template, options).run();
}

}  // namespace troupe
