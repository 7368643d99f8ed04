#pragma once
// From a template's source to its syntax tree.

#include <memory>
#include <string_view>

#include "engine/chat_template/ast.h"
#include "engine/chat_template/limits.h"
#include "troupe/status.h"

namespace troupe::chat_template {

// kInvalidArgument: broken syntax or an exceeded limit; kUnsupported: a construct or name that is
// not known. Both name the line.
[[nodiscard]] Result<std::unique_ptr<const Program>> parse(std::string_view source,
                                                           const ChatTemplateLimits& limits);

}  // namespace troupe::chat_template
