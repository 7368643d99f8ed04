#include "base/config/setting_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "base/assert.h"
#include "base/config/nearest.h"

namespace troupe {
namespace {

constexpr size_t kShownBytesMax = 60;  // of a wrong value, in the message about it

// The type of what a target takes.
template <class T>
struct ValueOf {
  using Type = T;
};
template <class T>
struct ValueOf<std::optional<T>> {
  using Type = T;
};

template <class T>
constexpr bool kWhole = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// Every whole number of a double's 53 bits prints as one.
std::string number_text(double value) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  return {digits, end};
}

std::string number_text_fixed(double value) {
  if (std::abs(value) < 1e15 && value == std::floor(value)) {
    return std::to_string(static_cast<int64_t>(value));
  }
  return number_text(value);
}

std::string shown(const std::string& text) {
  if (text.size() <= kShownBytesMax) return quoted(text);
  return quoted(text.substr(0, kShownBytesMax) + "...");
}

template <class T>
std::string range_text(const Setting& setting) {
  std::string least, most;
  if constexpr (kWhole<T>) {
    least = std::to_string(std::numeric_limits<T>::min());
    if constexpr (sizeof(T) < 8) most = std::to_string(std::numeric_limits<T>::max());
  }
  if (setting.least) least = number_text_fixed(*setting.least);
  if (setting.most) most = number_text_fixed(*setting.most);
  if (least.empty() && most.empty()) return "";
  if (most.empty()) return ", " + least + " or more";
  if (least.empty()) return ", " + most + " or less";
  return " from " + least + " to " + most;
}

std::string joined(const std::vector<std::string>& texts, const char* between) {
  std::string out;
  for (const std::string& text : texts) {
    if (!out.empty()) out += between;
    out += text;
  }
  return out;
}

Status broken(const Setting& setting, const SettingTarget& target, const std::string& subject,
              const std::string& text) {
  std::string message = subject + " must be " + rule_of(setting, target) + ", not " + shown(text);
  if (const auto near = nearest(text, setting.choices)) {
    message += "; did you mean " + quoted(*near) + "?";
  }
  return invalid_argument(std::move(message), setting.name);
}

bool in_range(const Setting& setting, double value) {
  return (!setting.least || value >= *setting.least) && (!setting.most || value <= *setting.most);
}

template <class T>
bool parse_number(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return result.ec == std::errc{} && result.ptr == end;
}

// Each writes `out` and returns true, or returns false: the text breaks the rule.
bool take(const Setting& /*setting*/, const std::string& text, bool& out) {
  if (text != "true" && text != "false") return false;
  out = text == "true";
  return true;
}

bool take(const Setting& setting, const std::string& text, std::string& out) {
  const auto& choices = setting.choices;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), text) == choices.end()) {
    return false;
  }
  out = text;
  return true;
}

template <class T>
bool take(const Setting& setting, const std::string& text, T& out) {
  typename ValueOf<T>::Type value{};
  if (!parse_number(text, value) || !in_range(setting, static_cast<double>(value))) return false;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(value)) return false;
  }
  out = value;
  return true;
}

}  // namespace

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      constexpr const char* kDigits = "0123456789ABCDEF";
      out += std::string("\\u00") + kDigits[byte >> 4] + kDigits[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> out;
  if (text.empty()) return out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t first = part.find_first_not_of(" \t");
    const size_t last = part.find_last_not_of(" \t");
    out.push_back(first == std::string::npos ? "" : part.substr(first, last - first + 1));
    begin = end + 1;
  }
  return out;
}

std::string rule_of(const Setting& setting, const SettingTarget& target) {
  return std::visit(
      [&](auto* value) -> std::string {
        using T = typename ValueOf<std::remove_pointer_t<decltype(value)>>::Type;
        if constexpr (std::is_same_v<T, bool>) return "true or false";
        if constexpr (std::is_floating_point_v<T>) return "a number" + range_text<T>(setting);
        if constexpr (kWhole<T>) return "a whole number" + range_text<T>(setting);
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return "a list of texts that are not empty";
        }
        return setting.choices.empty() ? "a text" : "one of " + joined(setting.choices, ", ");
      },
      target);
}

std::string type_label(const Setting& setting, const SettingTarget& target) {
  return std::visit(
      [&](auto* value) -> std::string {
        using T = typename ValueOf<std::remove_pointer_t<decltype(value)>>::Type;
        if constexpr (std::is_same_v<T, bool>) return "";
        if constexpr (std::is_same_v<T, std::vector<std::string>>) return "TEXT,...";
        if constexpr (std::is_same_v<T, std::string>) {
          return setting.choices.empty() ? "TEXT" : "{" + joined(setting.choices, ",") + "}";
        }
        auto least = setting.least;
        if (std::is_unsigned_v<T> && !least) least = 0.0;
        const std::string range = least && setting.most
                                      ? " in [" + number_text_fixed(*least) + " - " +
                                            number_text_fixed(*setting.most) + "]"
                                      : "";
        if constexpr (std::is_floating_point_v<T>) return "FLOAT" + range;
        return (std::is_signed_v<T> ? "INT" : "UINT") + range;
      },
      target);
}

Status assign(const Setting& setting, const SettingTarget& target, const std::string& subject,
              const std::vector<std::string>& texts) {
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&target)) {
    for (const std::string& text : texts) {
      if (text.empty()) return broken(setting, target, subject, joined(texts, ","));
    }
    **list = texts;
    return ok_status();
  }
  TROUPE_ASSERT(texts.size() == 1, setting.name, texts.size());
  const bool taken = std::visit(
      [&](auto* value) {
        using T = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return false;
        } else {
          return take(setting, texts.front(), *value);
        }
      },
      target);
  return taken ? ok_status() : broken(setting, target, subject, texts.front());
}

std::string toml_of(const SettingTarget& target) {
  return std::visit(
      [](auto* value) -> std::string {
        using T = std::remove_pointer_t<decltype(value)>;
        if constexpr (std::is_same_v<T, bool>) return *value ? "true" : "false";
        if constexpr (std::is_same_v<T, std::string>) return quoted(*value);
        if constexpr (std::is_same_v<T, std::optional<uint16_t>>) {
          return *value ? std::to_string(**value) : "";
        }
        if constexpr (std::is_floating_point_v<T>) return number_text(*value);
        if constexpr (kWhole<T>) return std::to_string(*value);
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          std::vector<std::string> parts;
          for (const std::string& text : *value) parts.push_back(quoted(text));
          return "[" + joined(parts, ", ") + "]";
        }
      },
      target);
}

std::string flag_text_of(const SettingTarget& target) {
  if (auto* const* text = std::get_if<std::string*>(&target)) return **text;
  if (auto* const* list = std::get_if<std::vector<std::string>*>(&target)) {
    return joined(**list, ",");
  }
  return toml_of(target);
}

}  // namespace troupe
