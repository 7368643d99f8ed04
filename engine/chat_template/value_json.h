#pragma once
// From JSON to what templates compute with. Apart from value.h, so that only those who have JSON
// include the JSON library.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "engine/chat_template/limits.h"
#include "engine/chat_template/value.h"
#include "troupe/status.h"

namespace troupe {

// Every string, keys included, becomes data. Integers outside int64 become floats. kInvalidArgument
// if the nesting exceeds limits.value_depth_max.
[[nodiscard]] Result<TemplateValue> template_value_from_json(const nlohmann::ordered_json& json,
                                                             const ChatTemplateLimits& limits = {});
// The same of JSON as text. kInvalidArgument also where it is none.
[[nodiscard]] Result<TemplateValue> template_value_from_json_text(std::string_view text,
                                                                  const ChatTemplateLimits& limits);

}  // namespace troupe
