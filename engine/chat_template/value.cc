#include "engine/chat_template/value.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/assert.h"

namespace troupe {

template <class T>
TemplateValue TemplateValue::from(T payload) {
  TemplateValue value;
  value.payload_ = std::move(payload);
  return value;
}

std::shared_ptr<const TemplateValue::Array> TemplateValue::make_array(List elements) {
  uint32_t depth = 0;
  for (const TemplateValue& element : elements) depth = std::max(depth, element.depth());
  return std::make_shared<const Array>(Array{std::move(elements), depth + 1});
}

TemplateValue TemplateValue::none() {
  return from(nullptr);
}
TemplateValue TemplateValue::boolean(bool value) {
  return from(value);
}
TemplateValue TemplateValue::integer(int64_t value) {
  return from(value);
}
TemplateValue TemplateValue::number(double value) {
  return from(value);
}
TemplateValue TemplateValue::data(std::string text) {
  return TemplateValue::text(TemplateText(std::move(text), TextOrigin::kData));
}
TemplateValue TemplateValue::markup(std::string text) {
  return TemplateValue::text(TemplateText(std::move(text), TextOrigin::kTemplate));
}
TemplateValue TemplateValue::text(TemplateText text) {
  return from(std::make_shared<const TemplateText>(std::move(text)));
}
TemplateValue TemplateValue::list(List elements) {
  return from(make_array(std::move(elements)));
}
TemplateValue TemplateValue::tuple(List elements) {
  return from(TupleRef{make_array(std::move(elements))});
}

TemplateValue TemplateValue::dict(std::vector<std::pair<std::string, TemplateValue>> entries) {
  Dict table;
  table.reserve(entries.size());
  std::unordered_map<std::string, size_t> places;
  for (auto& [key, value] : entries) {
    const auto [place, is_new] = places.emplace(key, table.size());
    if (is_new) {
      table.emplace_back(data(std::move(key)), std::move(value));
    } else {
      table[place->second].second = std::move(value);
    }
  }
  return dict(std::move(table));
}

TemplateValue TemplateValue::dict(Dict entries) {
  uint32_t depth = 0;
  for (const auto& [key, value] : entries) {
    TROUPE_ASSERT(key.depth() == 0, "a key is no container");
    depth = std::max(depth, value.depth());
  }
  return from(std::make_shared<const Table>(Table{std::move(entries), depth + 1}));
}

TemplateValue TemplateValue::of(chat_template::Namespace* namespace_value) {
  TROUPE_ASSERT(namespace_value != nullptr, "a namespace value refers to a namespace");
  return from(namespace_value);
}
TemplateValue TemplateValue::of(const chat_template::Macro* macro) {
  TROUPE_ASSERT(macro != nullptr, "a macro value refers to a macro");
  return from(macro);
}
TemplateValue TemplateValue::of(chat_template::LoopState* loop) {
  TROUPE_ASSERT(loop != nullptr, "a loop value refers to a loop");
  return from(loop);
}
TemplateValue TemplateValue::of(chat_template::FunctionId function) {
  return from(function);
}

bool TemplateValue::as_bool() const {
  TROUPE_ASSERT(is(Kind::kBool), type_name());
  return std::get<bool>(payload_);
}

int64_t TemplateValue::as_int() const {
  if (is(Kind::kBool)) return as_bool() ? 1 : 0;
  TROUPE_ASSERT(is(Kind::kInt), type_name());
  return std::get<int64_t>(payload_);
}

double TemplateValue::as_number() const {
  if (is(Kind::kFloat)) return std::get<double>(payload_);
  return static_cast<double>(as_int());
}

const TemplateText& TemplateValue::as_text() const {
  TROUPE_ASSERT(is(Kind::kText), type_name());
  return *std::get<std::shared_ptr<const TemplateText>>(payload_);
}

const TemplateValue::List& TemplateValue::as_list() const {
  TROUPE_ASSERT(is_array(), type_name());
  if (is(Kind::kTuple)) return std::get<TupleRef>(payload_).array->elements;
  return std::get<std::shared_ptr<const Array>>(payload_)->elements;
}

const TemplateValue::Dict& TemplateValue::as_dict() const {
  TROUPE_ASSERT(is(Kind::kDict), type_name());
  return std::get<std::shared_ptr<const Table>>(payload_)->entries;
}

chat_template::Namespace& TemplateValue::as_namespace() const {
  TROUPE_ASSERT(is(Kind::kNamespace), type_name());
  return *std::get<chat_template::Namespace*>(payload_);
}

const chat_template::Macro& TemplateValue::as_macro() const {
  TROUPE_ASSERT(is(Kind::kMacro), type_name());
  return *std::get<const chat_template::Macro*>(payload_);
}

chat_template::LoopState& TemplateValue::as_loop() const {
  TROUPE_ASSERT(is(Kind::kLoop), type_name());
  return *std::get<chat_template::LoopState*>(payload_);
}

chat_template::FunctionId TemplateValue::as_function() const {
  TROUPE_ASSERT(is(Kind::kFunction), type_name());
  return std::get<chat_template::FunctionId>(payload_);
}

const TemplateValue* TemplateValue::find(std::string_view key) const {
  for (const auto& [name, value] : as_dict()) {
    if (name.is(Kind::kText) && name.as_text().bytes() == key) return &value;
  }
  return nullptr;
}

uint32_t TemplateValue::depth() const {
  switch (kind()) {
    case Kind::kList:
      return std::get<std::shared_ptr<const Array>>(payload_)->depth;
    case Kind::kTuple:
      return std::get<TupleRef>(payload_).array->depth;
    case Kind::kDict:
      return std::get<std::shared_ptr<const Table>>(payload_)->depth;
    default:
      return 0;
  }
}

bool TemplateValue::truthy() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return as_int() != 0;
    case Kind::kFloat:
      return as_number() != 0;
    case Kind::kText:
      return !as_text().empty();
    case Kind::kList:
    case Kind::kTuple:
      return !as_list().empty();
    case Kind::kDict:
      return !as_dict().empty();
    default:
      return true;
  }
}

std::string_view TemplateValue::type_name() const {
  static constexpr std::array<std::string_view, 13> kNames = {
      "undefined", "NoneType", "bool",      "int",   "float", "str",     "list",
      "tuple",     "dict",     "namespace", "macro", "loop",  "function"};
  return kNames.at(payload_.index());
}

}  // namespace troupe
