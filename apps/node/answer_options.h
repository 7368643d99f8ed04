#pragma once
// In which form models call tools and show reasoning, where their templates do not say it right.

#include <string>
#include <vector>

#include "actors/gateway/openai/model_catalogue.h"
#include "base/config/settings.h"

namespace troupe {

struct AnswerOptions {
  std::string tool_call_format = "auto";
  std::string reasoning_format = "auto";

  // To the command line of another program that has these settings.
  [[nodiscard]] std::vector<std::string> flags() const {
    return {"--tool-call-format", tool_call_format, "--reasoning-format", reasoning_format};
  }
};

// --tool-call-format and --reasoning-format, for programs with front ends.
void add_answer_settings(Settings& settings, AnswerOptions& options);

// For all models that are added to the catalogue from now on. The options are as parsed.
void use_answer_options(const AnswerOptions& options, ModelCatalogue& models);

}  // namespace troupe
