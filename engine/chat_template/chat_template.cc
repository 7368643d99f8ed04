#include "engine/chat_template/chat_template.h"

#include "engine/chat_template/ast.h"
#include "engine/chat_template/parser.h"
#include "engine/chat_template/renderer.h"

namespace troupe {

ChatTemplate::ChatTemplate(std::string source,
                           std::unique_ptr<const chat_template::Program> program,
                           ChatTemplateLimits limits)
    : source_(std::move(source)),
      program_(std::move(program)),
      traits_(*program_),
      limits_(limits) {}

ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::compile(std::string source, ChatTemplateLimits limits) {
  TROUPE_ASSIGN_OR_RETURN(std::unique_ptr<const chat_template::Program> program,
                          chat_template::parse(source, limits));
  return ChatTemplate(std::move(source), std::move(program), limits);
}

Result<std::vector<TemplatePiece>> ChatTemplate::render(const TemplateValue& context,
                                                        int64_t unix_seconds) const {
  return render(context, unix_seconds, limits_);
}

Result<std::vector<TemplatePiece>> ChatTemplate::render(const TemplateValue& context,
                                                        int64_t unix_seconds,
                                                        const ChatTemplateLimits& limits) const {
  if (!context.is(TemplateValue::Kind::kDict)) {
    return invalid_argument("a chat template needs a dict of variables, not a '" +
                            std::string(context.type_name()) + "'");
  }
  chat_template::Renderer renderer(limits, context, unix_seconds);
  TROUPE_ASSIGN_OR_RETURN(const TemplateText text, renderer.run(*program_));
  std::vector<TemplatePiece> pieces;
  size_t begin = 0;
  for (const TemplateText::Run& run : text.runs()) {
    pieces.push_back(
        {text.bytes().substr(begin, run.end - begin), run.origin == TextOrigin::kTemplate});
    begin = run.end;
  }
  return pieces;
}

const TemplateTraits& ChatTemplate::traits() const {
  return traits_;
}

const std::string& ChatTemplate::source() const {
  return source_;
}

}  // namespace troupe
