#include <array>

#include "engine/chat_template/arguments.h"
#include "engine/chat_template/filters.h"
#include "engine/chat_template/format.h"
#include "engine/chat_template/operators.h"
#include "engine/chat_template/string_format.h"
#include "engine/chat_template/text_functions.h"
#include "engine/chat_template/unicode.h"
#include "engine/chat_template/value_json.h"

namespace troupe::chat_template {
namespace {

using Kind = TemplateValue::Kind;

template <Case wanted>
Result<TemplateValue> case_filter(Budget& budget, const TemplateValue& input,
                                  const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText text, to_text(budget, input));
  TROUPE_ASSIGN_OR_RETURN(TemplateText changed, change_case(budget, text, wanted));
  return TemplateValue::text(std::move(changed));
}

Result<TemplateValue> string_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(TemplateText text, to_text(budget, input));
  return TemplateValue::text(std::move(text));
}

Result<TemplateValue> trim_filter(Budget& budget, const TemplateValue& input,
                                  const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<1>(arguments, {"chars"}, 0));
  std::optional<std::string_view> characters;
  if (bound[0] != nullptr && !bound[0]->is(Kind::kNone)) {
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* text, text_argument(*bound[0]));
    characters = text->bytes();
  }
  TROUPE_ASSIGN_OR_RETURN(const TemplateText text, to_text(budget, input));
  TROUPE_ASSIGN_OR_RETURN(TemplateText stripped, strip(budget, text, Side::kBoth, characters));
  return TemplateValue::text(std::move(stripped));
}

Result<TemplateValue> replace_filter(Budget& budget, const TemplateValue& input,
                                     const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<3>(arguments, {"old", "new", "count"}, 2));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText text, to_text(budget, input));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText from, to_text(budget, *bound[0]));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText to, to_text(budget, *bound[1]));
  TROUPE_ASSIGN_OR_RETURN(const int64_t count, int_argument(bound[2], -1));
  TROUPE_ASSIGN_OR_RETURN(TemplateText result, replace(budget, text, from.bytes(), to, count));
  return TemplateValue::text(std::move(result));
}

Result<TemplateValue> indent_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const auto bound, bind<3>(arguments, {"width", "first", "blank"}, 0));
  TemplateText indent;
  if (bound[0] != nullptr && bound[0]->is(Kind::kText)) {
    indent = bound[0]->as_text();
  } else {
    TROUPE_ASSIGN_OR_RETURN(const int64_t width, int_argument(bound[0], 4));
    TROUPE_RETURN_IF_ERROR(budget.text(width > 0 ? static_cast<uint64_t>(width) : 0));
    indent.append(std::string(width > 0 ? static_cast<size_t>(width) : 0, ' '),
                  TextOrigin::kTemplate);
  }
  TROUPE_ASSIGN_OR_RETURN(TemplateText text, to_text(budget, input));
  text.append("\n", TextOrigin::kTemplate);  // so that a last empty line counts as one
  TROUPE_ASSIGN_OR_RETURN(const std::vector<TemplateText> lines,
                          split_lines(budget, text, LineEnds::kDropped));
  const bool indents_first = bool_argument(bound[1], false);
  const bool indents_blank = bool_argument(bound[2], false);
  TemplateText result;
  for (size_t i = 0; i < lines.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(budget.grow(result.size(), lines[i].size() + 1));
    TROUPE_RETURN_IF_ERROR(budget.append(result, indent));
    if (i > 0) result.append("\n", TextOrigin::kTemplate);
    if (i == 0 ? indents_first : indents_blank || !lines[i].empty()) result.append(indent);
    result.append(lines[i]);
  }
  return TemplateValue::text(std::move(result));
}

Result<TemplateValue> escape_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  static constexpr std::array<std::pair<std::string_view, const char*>, 5> kEntities = {
      {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"'", "&#39;"}, {"\"", "&#34;"}}};
  TROUPE_ASSIGN_OR_RETURN(TemplateText text, to_text(budget, input));
  for (const auto& [character, entity] : kEntities) {
    TROUPE_ASSIGN_OR_RETURN(
        text, replace(budget, text, character, TemplateText(entity, TextOrigin::kData), -1));
  }
  return TemplateValue::text(std::move(text));
}

Result<TemplateValue> wordcount_filter(Budget& budget, const TemplateValue& input,
                                       const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText text, to_text(budget, input));
  int64_t count = 0;
  bool is_inside = false;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text.bytes(), at);
    if (is_word(point.value) && !is_inside) ++count;
    is_inside = is_word(point.value);
    at += point.bytes;
  }
  return TemplateValue::integer(count);
}

// Hugging Face's tojson: json.dumps without HTML escapes, its parameters in this order.
Result<TemplateValue> tojson_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(
      const auto bound,
      bind<4>(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}, 0));
  JsonOptions options;
  options.is_ascii = bool_argument(bound[0], false);
  options.sorts_keys = bool_argument(bound[3], false);
  if (bound[1] != nullptr && bound[1]->is(Kind::kText)) {
    options.indent = bound[1]->as_text().bytes();
  } else if (bound[1] != nullptr && !bound[1]->is(Kind::kNone)) {
    TROUPE_ASSIGN_OR_RETURN(const int64_t width, int_argument(bound[1], 0));
    TROUPE_RETURN_IF_ERROR(budget.text(width > 0 ? static_cast<uint64_t>(width) : 0));
    options.indent = std::string(width > 0 ? static_cast<size_t>(width) : 0, ' ');
  }
  if (options.indent) options.item_separator = ",";
  if (bound[2] != nullptr && !bound[2]->is(Kind::kNone)) {
    if (!bound[2]->is_array() || bound[2]->as_list().size() != 2) {
      return invalid_argument("needs two 'separators'");
    }
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* item, text_argument(bound[2]->as_list()[0]));
    TROUPE_ASSIGN_OR_RETURN(const TemplateText* key, text_argument(bound[2]->as_list()[1]));
    options.item_separator = item->bytes();
    options.key_separator = key->bytes();
  }
  TROUPE_ASSIGN_OR_RETURN(std::string json, to_json(budget, input, options));
  return TemplateValue::data(std::move(json));
}

// The reverse of tojson: llama.cpp's templates for DeepSeek use it, jinja2 has none.
Result<TemplateValue> from_json_filter(Budget& budget, const TemplateValue& input,
                                       const CallArguments& arguments) {
  TROUPE_RETURN_IF_ERROR(expect_no_arguments(arguments));
  TROUPE_ASSIGN_OR_RETURN(const TemplateText* text, text_argument(input));
  // A byte of JSON makes at most one value.
  TROUPE_RETURN_IF_ERROR(budget.elements(text->size()));
  return template_value_from_json_text(text->bytes(), budget.limits());
}

// 'a %s' | format(value)
Result<TemplateValue> format_filter(Budget& budget, const TemplateValue& input,
                                    const CallArguments& arguments) {
  TROUPE_ASSIGN_OR_RETURN(const TemplateText format, to_text(budget, input));
  TemplateValue values;
  if (!arguments.named.empty()) {
    if (!arguments.positional.empty()) {
      return invalid_argument("takes values by place or by name, not both");
    }
    TemplateValue::Dict names;
    for (const auto& [name, value] : arguments.named) {
      names.emplace_back(TemplateValue::markup(name), value);
    }
    TROUPE_ASSIGN_OR_RETURN(values, make_dict(budget, std::move(names)));
  } else {
    TROUPE_ASSIGN_OR_RETURN(values, make_tuple(budget, arguments.positional));
  }
  TROUPE_ASSIGN_OR_RETURN(TemplateText text, format_percent(budget, format, values));
  return TemplateValue::text(std::move(text));
}

}  // namespace

std::span<const NamedFilter> text_filters() {
  static constexpr std::array<NamedFilter, 15> kFilters = {{
      {"capitalize", case_filter<Case::kCapitalized>},
      {"lower", case_filter<Case::kLower>},
      {"title", case_filter<Case::kTitleFilter>},
      {"upper", case_filter<Case::kUpper>},
      {"e", escape_filter},
      {"escape", escape_filter},
      {"format", format_filter},
      {"from_json", from_json_filter},
      {"indent", indent_filter},
      {"replace", replace_filter},
      {"safe", string_filter},
      {"string", string_filter},
      {"tojson", tojson_filter},
      {"trim", trim_filter},
      {"wordcount", wordcount_filter},
  }};
  return kFilters;
}

}  // namespace troupe::chat_template
