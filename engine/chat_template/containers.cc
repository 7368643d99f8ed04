// Access to the parts of lists, dicts and texts.
#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "engine/chat_template/builtins.h"
#include "engine/chat_template/errors.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/runtime.h"
#include "engine/chat_template/unicode.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The entry under any key, or nullptr.
Result<const TemplateValue*> find_key(Budget& budget, const TemplateValue& dict,
                                      const TemplateValue& key) {
  TROUPE_RETURN_IF_ERROR(budget.work(dict.as_dict().size() * 16));
  if (key.is(Kind::kText)) return dict.find(key.as_text().bytes());
  for (const auto& [name, value] : dict.as_dict()) {
    TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, name, key));
    if (is_equal) return &value;
  }
  return static_cast<const TemplateValue*>(nullptr);
}

// The character at a Python index, which counts from the end if negative; undefined outside.
TemplateValue character_at(const TemplateText& text, int64_t index) {
  const auto count = static_cast<int64_t>(code_point_count(text.bytes()));
  if (index < 0) index += count;
  if (index < 0 || index >= count) return {};
  const size_t begin = byte_offset(text.bytes(), static_cast<size_t>(index));
  return TemplateValue::text(text.slice(begin, begin + decode(text.bytes(), begin).bytes));
}

struct SliceBounds {
  int64_t start;
  int64_t stop;
  int64_t step;
};

Result<int64_t> slice_part(const TemplateValue& value, int64_t fallback) {
  if (value.is(Kind::kNone) || value.is(Kind::kUndefined)) return fallback;
  if (value.is(Kind::kInt) || value.is(Kind::kBool)) return value.as_int();
  return invalid_argument("a slice needs integers, not '" + std::string(value.type_name()) + "'");
}

// As Python's slice.indices(): with a negative step, stop is -1 for "before the first".
Result<SliceBounds> slice_bounds(int64_t length, const TemplateValue& start,
                                 const TemplateValue& stop, const TemplateValue& step) {
  SliceBounds bounds{};
  TROUPE_ASSIGN_OR_RETURN(bounds.step, slice_part(step, 1));
  if (bounds.step == 0) return invalid_argument("the step of a slice cannot be zero");
  // So large a step reaches one element at most, as does any larger one.
  bounds.step = std::clamp<int64_t>(bounds.step, -length - 1, length + 1);
  const bool is_forward = bounds.step > 0;
  const int64_t lowest = is_forward ? 0 : -1;
  const int64_t highest = is_forward ? length : length - 1;
  const auto clip = [&](int64_t index) {
    if (index < 0) index += length;
    return std::clamp(index, lowest, highest);
  };
  // The defaults are clipped values already and must not count from the end.
  TROUPE_ASSIGN_OR_RETURN(bounds.start, slice_part(start, 0));
  TROUPE_ASSIGN_OR_RETURN(bounds.stop, slice_part(stop, 0));
  const auto is_given = [](const TemplateValue& v) {
    return !v.is(Kind::kNone) && !v.is(Kind::kUndefined);
  };
  bounds.start = is_given(start) ? clip(bounds.start) : is_forward ? lowest : highest;
  bounds.stop = is_given(stop) ? clip(bounds.stop) : is_forward ? highest : lowest;
  return bounds;
}

bool is_inside(int64_t index, const SliceBounds& bounds) {
  return bounds.step > 0 ? index < bounds.stop : index > bounds.stop;
}

Result<TemplateValue> slice_text(Budget& budget, const TemplateText& text,
                                 const TemplateValue& start, const TemplateValue& stop,
                                 const TemplateValue& step) {
  TROUPE_RETURN_IF_ERROR(budget.copy(text));
  // Byte offsets of the characters and of the end; the characters themselves are bytes in ASCII.
  std::vector<size_t> offsets;
  const std::string& bytes = text.bytes();
  const bool is_plain = is_ascii(bytes);
  if (!is_plain) {
    TROUPE_RETURN_IF_ERROR(budget.work(text.size() * sizeof(size_t)));
    for (size_t at = 0; at < bytes.size(); at += decode(bytes, at).bytes) offsets.push_back(at);
    offsets.push_back(bytes.size());
  }
  const auto offset = [&](int64_t index) {
    return is_plain ? static_cast<size_t>(index) : offsets[static_cast<size_t>(index)];
  };
  const auto length = static_cast<int64_t>(is_plain ? bytes.size() : offsets.size() - 1);
  TROUPE_ASSIGN_OR_RETURN(const SliceBounds bounds, slice_bounds(length, start, stop, step));
  if (bounds.step == 1) {
    return TemplateValue::text(
        text.slice(offset(bounds.start), offset(std::max(bounds.start, bounds.stop))));
  }
  TemplateText result;
  for (int64_t i = bounds.start; is_inside(i, bounds); i += bounds.step) {
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    result.append_slice(text, offset(i), offset(i + 1));
  }
  return TemplateValue::text(std::move(result));
}

TemplateValue method_value() {
  return TemplateValue::of(FunctionId::kMethod);
}

}  // namespace

Result<TemplateValue> get_attribute(Budget& budget, const TemplateValue& object,
                                    std::string_view name) {
  TROUPE_ASSERT(!object.is(Kind::kUndefined), name);
  if (object.is(Kind::kLoop)) {
    if (has_method(object, name)) return method_value();
    return object.as_loop().attribute(name);
  }
  if (object.is(Kind::kNamespace)) {
    const TemplateValue* value = object.as_namespace().find(name);
    return value == nullptr ? TemplateValue() : *value;
  }
  if (has_method(object, name)) return method_value();
  if (!object.is(Kind::kDict) || is_mutating_dict_method(name)) return TemplateValue();
  TROUPE_RETURN_IF_ERROR(budget.work(object.as_dict().size() * 16));
  const TemplateValue* value = object.find(name);
  return value == nullptr ? TemplateValue() : *value;
}

Result<TemplateValue> get_item(Budget& budget, const TemplateValue& object,
                               const TemplateValue& index) {
  TROUPE_ASSERT(!object.is(Kind::kUndefined), index.type_name());
  const bool is_integer = index.is(Kind::kInt) || index.is(Kind::kBool);
  if (object.is(Kind::kDict) && index.depth() == 0) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateValue* value, find_key(budget, object, index));
    if (value != nullptr) return *value;
  } else if (object.is(Kind::kText) && is_integer) {
    TROUPE_RETURN_IF_ERROR(budget.work(object.as_text().size()));
    return character_at(object.as_text(), index.as_int());
  } else if (object.is_array() && is_integer) {
    const auto length = static_cast<int64_t>(object.as_list().size());
    const int64_t at = index.as_int() < 0 ? index.as_int() + length : index.as_int();
    if (at < 0 || at >= length) return TemplateValue();
    return object.as_list()[static_cast<size_t>(at)];
  }
  if (!index.is(Kind::kText)) return TemplateValue();
  return get_attribute(budget, object, index.as_text().bytes());
}

Result<TemplateValue> get_slice(Budget& budget, const TemplateValue& object,
                                const TemplateValue& start, const TemplateValue& stop,
                                const TemplateValue& step) {
  if (object.is(Kind::kText)) return slice_text(budget, object.as_text(), start, stop, step);
  if (!object.is_array()) {
    return invalid_argument("a '" + std::string(object.type_name()) + "' cannot be sliced");
  }
  const TemplateValue::List& list = object.as_list();
  TROUPE_ASSIGN_OR_RETURN(const SliceBounds bounds,
                          slice_bounds(static_cast<int64_t>(list.size()), start, stop, step));
  TemplateValue::List result;
  for (int64_t i = bounds.start; is_inside(i, bounds); i += bounds.step) {
    TROUPE_RETURN_IF_ERROR(budget.steps(1));
    result.push_back(list[static_cast<size_t>(i)]);
  }
  if (object.is(Kind::kTuple)) return make_tuple(budget, std::move(result));
  return make_list(budget, std::move(result));
}

Result<TemplateValue::List> elements_of(Budget& budget, const TemplateValue& value) {
  TemplateValue::List elements;
  switch (value.kind()) {
    case Kind::kUndefined:
      return elements;
    case Kind::kList:
    case Kind::kTuple:
      TROUPE_RETURN_IF_ERROR(budget.elements(value.as_list().size()));
      return value.as_list();
    case Kind::kDict:
      TROUPE_RETURN_IF_ERROR(budget.elements(value.as_dict().size()));
      for (const auto& [key, entry] : value.as_dict()) elements.push_back(key);
      return elements;
    case Kind::kText: {
      const TemplateText& text = value.as_text();
      TROUPE_RETURN_IF_ERROR(budget.elements(text.size()));
      for (size_t at = 0; at < text.size();) {
        const size_t end = at + decode(text.bytes(), at).bytes;
        elements.push_back(TemplateValue::text(text.slice(at, end)));
        at = end;
      }
      return elements;
    }
    default:
      return invalid_argument("'" + std::string(value.type_name()) + "' has no elements");
  }
}

Result<int64_t> length_of(Budget& budget, const TemplateValue& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return int64_t{0};
    case Kind::kList:
    case Kind::kTuple:
      return static_cast<int64_t>(value.as_list().size());
    case Kind::kDict:
      return static_cast<int64_t>(value.as_dict().size());
    case Kind::kText:
      TROUPE_RETURN_IF_ERROR(budget.work(value.as_text().size()));
      return static_cast<int64_t>(code_point_count(value.as_text().bytes()));
    default:
      return invalid_argument("'" + std::string(value.type_name()) + "' has no length");
  }
}

Result<TemplateValue> make_list(Budget& budget, TemplateValue::List elements) {
  TROUPE_RETURN_IF_ERROR(budget.elements(elements.size()));
  TemplateValue list = TemplateValue::list(std::move(elements));
  TROUPE_RETURN_IF_ERROR(budget.value_depth(list.depth()));
  return list;
}

Result<TemplateValue> make_tuple(Budget& budget, TemplateValue::List elements) {
  TROUPE_RETURN_IF_ERROR(budget.elements(elements.size()));
  TemplateValue tuple = TemplateValue::tuple(std::move(elements));
  TROUPE_RETURN_IF_ERROR(budget.value_depth(tuple.depth()));
  return tuple;
}

Result<TemplateValue> make_dict(Budget& budget, TemplateValue::Dict entries) {
  TROUPE_RETURN_IF_ERROR(budget.elements(entries.size()));
  TemplateValue::Dict unique;
  for (auto& [key, value] : entries) {
    if (key.depth() > 0) {
      return invalid_argument("a " + std::string(key.type_name()) + " cannot be a key of a dict");
    }
    auto place = unique.begin();
    for (; place != unique.end(); ++place) {
      TROUPE_RETURN_IF_ERROR(budget.steps(1));
      TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, place->first, key));
      if (is_equal) break;
    }
    if (place == unique.end()) {
      unique.emplace_back(std::move(key), std::move(value));
    } else {
      place->second = std::move(value);
    }
  }
  TemplateValue dict = TemplateValue::dict(std::move(unique));
  TROUPE_RETURN_IF_ERROR(budget.value_depth(dict.depth()));
  return dict;
}

Result<bool> contains(Budget& budget, const TemplateValue& container, const TemplateValue& item) {
  switch (container.kind()) {
    case Kind::kUndefined:
      return false;
    case Kind::kText: {
      if (!item.is(Kind::kText)) {
        return invalid_argument("'in' a str needs a str, not '" + std::string(item.type_name()) +
                                "'");
      }
      const std::string& hay = container.as_text().bytes();
      const std::string& needle = item.as_text().bytes();
      TROUPE_RETURN_IF_ERROR(budget.work(hay.size()));
      return memmem(hay.data(), hay.size(), needle.data(), needle.size()) != nullptr;
    }
    case Kind::kDict: {
      if (item.depth() > 0) {
        return invalid_argument("a " + std::string(item.type_name()) +
                                " cannot be a key of a dict");
      }
      TROUPE_ASSIGN_OR_RETURN(const TemplateValue* value, find_key(budget, container, item));
      return value != nullptr;
    }
    case Kind::kList:
    case Kind::kTuple:
      for (const TemplateValue& element : container.as_list()) {
        TROUPE_ASSIGN_OR_RETURN(const bool is_equal, equals(budget, element, item));
        if (is_equal) return true;
      }
      return false;
    default:
      return invalid_argument("'in' cannot search a '" + std::string(container.type_name()) + "'");
  }
}

}  // namespace troupe::chat_template
