#include "apps/node/answer_options.h"

#include "actors/gateway/tools/tool_format.h"

namespace troupe {

void add_answer_settings(Settings& settings, AnswerOptions& options) {
  settings.add({.name = "tool-call-format",
                .help = "Form of the model's tool calls; auto: as its chat template says",
                .choices = {"auto", "hermes", "llama3", "mistral", "mistral-args", "none"}},
               &options.tool_call_format);
  settings.add({.name = "reasoning-format",
                .help = "Form of the model's reasoning; auto: as its chat template says",
                .choices = {"auto", "think", "none"}},
               &options.reasoning_format);
}

void use_answer_options(const AnswerOptions& options, ModelCatalogue& models) {
  models.use_formats(tool_format_of(options.tool_call_format),
                     reasoning_format_of(options.reasoning_format));
}

}  // namespace troupe
