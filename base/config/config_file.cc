#include "base/config/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/config/nearest.h"
#include "base/config/setting_names.h"
#include "base/config/setting_value.h"

namespace troupe {
namespace {

bool known_anywhere(std::string_view name) {
  return std::find(kSettingNames.begin(), kSettingNames.end(), name) != kSettingNames.end();
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string hint(std::string_view name, const std::vector<std::string>& known,
                 const std::string& otherwise) {
  const auto near = nearest(name, known);
  return near ? "; did you mean " + *near + "?" : "; " + otherwise;
}

class Reader {
 public:
  Reader(const std::string& path, const std::string& program, const std::vector<std::string>& own)
      : path_(path), program_(program), own_(own) {}

  Result<std::map<std::string, FileValue>> read(const toml::table& file) {
    for (auto&& [key, node] : file) {
      TROUPE_RETURN_IF_ERROR(take_top(std::string(key.str()), key.source(), node));
    }
    if (const toml::table* table = file[program_].as_table()) {
      for (auto&& [key, node] : *table) {
        TROUPE_RETURN_IF_ERROR(take_own(std::string(key.str()), key.source(), node));
      }
    }
    return std::move(values_);
  }

 private:
  Status take_top(const std::string& name, const toml::source_region& region,
                  const toml::node& node) {
    const std::string place = place_of(region);
    const bool is_table_name =
        std::find(kSettingTables.begin(), kSettingTables.end(), name) != kSettingTables.end();
    if (node.is_table() && !is_table_name && !known_anywhere(name)) {
      return invalid_argument(place + ": unknown table [" + name + "]" +
                              hint(name, {kSettingTables.begin(), kSettingTables.end()},
                                   "a table is named after a program: " + tables()));
    }
    if (is_table_name) {
      if (node.is_table()) return ok_status();
      return invalid_argument(place + ": " + name + " is the name of a table; write [" + name +
                              "] and its settings below it");
    }
    if (contains(own_, name)) return keep(name, place, node);
    if (known_anywhere(name)) return ok_status();
    return invalid_argument(place + ": unknown setting " + quoted(name) +
                            hint(name, {kSettingNames.begin(), kSettingNames.end()},
                                 "the programs' --help lists the settings"));
  }

  Status take_own(const std::string& name, const toml::source_region& region,
                  const toml::node& node) {
    const std::string place = place_of(region);
    if (contains(own_, name)) return keep(name, place, node);
    if (known_anywhere(name)) {
      return invalid_argument(place + ": " + name + " is no setting of [" + program_ +
                              "]; move it to the table of the program that it is for");
    }
    return invalid_argument(place + ": unknown setting " + quoted(name) + " in [" + program_ + "]" +
                            hint(name, own_, "the program's --help lists its settings"));
  }

  Status keep(const std::string& name, const std::string& place, const toml::node& node) {
    values_[name] = value_of(node, place);
    return ok_status();
  }

  static FileValue value_of(const toml::node& node, const std::string& place) {
    using Kind = FileValue::Kind;
    if (const auto* text = node.as_string()) return {Kind::kText, {text->get()}, place};
    if (const auto* truth = node.as_boolean()) {
      return {Kind::kTruth, {truth->get() ? "true" : "false"}, place};
    }
    if (const auto* whole = node.as_integer()) {
      return {Kind::kWhole, {std::to_string(whole->get())}, place};
    }
    if (const auto* number = node.as_floating_point()) {
      char digits[64];
      const auto end = std::to_chars(digits, digits + sizeof(digits), number->get()).ptr;
      return {Kind::kNumber, {std::string(digits, end)}, place};
    }
    FileValue value{Kind::kOther, {}, place};
    if (const auto* array = node.as_array()) {
      value.kind = Kind::kTexts;
      for (const toml::node& element : *array) {
        const auto* text = element.as_string();
        if (text == nullptr) return {Kind::kOther, {}, place};
        value.texts.push_back(text->get());
      }
    }
    return value;
  }

  static std::string tables() {
    std::string out;
    for (const std::string_view name : kSettingTables) {
      if (!out.empty()) out += ", ";
      out += name;
    }
    return out;
  }

  std::string place_of(const toml::source_region& region) const {
    return path_ + ":" + std::to_string(region.begin.line);
  }

  const std::string& path_;
  const std::string& program_;
  const std::vector<std::string>& own_;
  std::map<std::string, FileValue> values_;
};

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  // A folder opens but cannot be read.
  if (!file || (file.peek(), file.bad())) {
    return Status(StatusCode::kNotFound, path + ": cannot be read (" + std::strerror(errno) +
                                             "); name a file that this user may read");
  }
  std::string bytes(kConfigBytesMax + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (bytes.size() > kConfigBytesMax) {
    return invalid_argument(path + ": larger than " + std::to_string(kConfigBytesMax) +
                            " bytes; this is no configuration file");
  }
  return bytes;
}

}  // namespace

std::string to_string(FileValue::Kind kind) {
  switch (kind) {
    case FileValue::Kind::kText:
      return "a text";
    case FileValue::Kind::kWhole:
      return "a whole number";
    case FileValue::Kind::kNumber:
      return "a number";
    case FileValue::Kind::kTruth:
      return "true or false";
    case FileValue::Kind::kTexts:
      return "a list of texts";
    case FileValue::Kind::kOther:
      break;
  }
  return "a table, a date or a mixed list";
}

Result<std::map<std::string, FileValue>> read_config_file(const std::string& path,
                                                          const std::string& program,
                                                          const std::vector<std::string>& own) {
  TROUPE_ASSIGN_OR_RETURN(const std::string text, read_text(path));
  try {
    const toml::table file = toml::parse(text, path);
    return Reader(path, program, own).read(file);
  } catch (const toml::parse_error& error) {
    const auto& begin = error.source().begin;
    return invalid_argument(path + ":" + std::to_string(begin.line) + ":" +
                            std::to_string(begin.column) +
                            ": not valid TOML: " + std::string(error.description()));
  }
}

}  // namespace troupe
