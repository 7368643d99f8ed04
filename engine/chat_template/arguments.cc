#include "engine/chat_template/arguments.h"

namespace troupe::chat_template {

Status expect_no_arguments(const CallArguments& arguments) {
  return bind<0>(arguments, {}, 0).status();
}

Result<int64_t> int_argument(const TemplateValue* value, int64_t fallback) {
  if (value == nullptr || value->is(TemplateValue::Kind::kNone)) return fallback;
  if (value->is(TemplateValue::Kind::kInt) || value->is(TemplateValue::Kind::kBool)) {
    return value->as_int();
  }
  return invalid_argument("needs an int, not '" + std::string(value->type_name()) + "'");
}

bool bool_argument(const TemplateValue* value, bool fallback) {
  return value == nullptr ? fallback : value->truthy();
}

Result<const TemplateText*> text_argument(const TemplateValue& value) {
  if (value.is(TemplateValue::Kind::kText)) return &value.as_text();
  return invalid_argument("needs a str, not '" + std::string(value.type_name()) + "'");
}

}  // namespace troupe::chat_template
