#include "base/config/config_file.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
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

  ConfigFile read(const toml::table& file) {
    for (const Item& item : in_order(file)) take_top(item);
    if (const toml::table* table = file[program_].as_table()) {
      for (const Item& item : in_order(*table)) take_own(item);
    }
    return std::move(file_);
  }

 private:
  struct Item {
    std::string name;
    uint32_t line;
    std::reference_wrapper<const toml::node> node;
  };

  // toml++ sorts by name; a reader goes through the file from its top.
  std::vector<Item> in_order(const toml::table& table) const {
    std::vector<Item> out;
    for (auto&& [key, node] : table) {
      out.push_back({std::string(key.str()), key.source().begin.line, node});
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const Item& a, const Item& b) { return a.line < b.line; });
    return out;
  }

  void take_top(const Item& item) {
    const auto& [name, line, node] = item;
    const std::string place = place_of(line);
    const bool is_table = node.get().is_table();
    const bool is_table_name =
        std::find(kSettingTables.begin(), kSettingTables.end(), name) != kSettingTables.end();
    if (is_table && !is_table_name && !known_anywhere(name)) {
      return fault(place + ": unknown table [" + name + "]" +
                   hint(name, {kSettingTables.begin(), kSettingTables.end()},
                        "a table is named after a program: " + tables()));
    }
    if (is_table_name) {
      if (is_table) return;
      return fault(place + ": " + name + " is the name of a table; write [" + name +
                   "] and its settings below it");
    }
    if (contains(own_, name)) return keep(name, place, node);
    if (known_anywhere(name)) return;
    fault(place + ": unknown setting " + quoted(name) +
          hint(name, {kSettingNames.begin(), kSettingNames.end()},
               "the programs' --help lists the settings"));
  }

  void take_own(const Item& item) {
    const auto& [name, line, node] = item;
    const std::string place = place_of(line);
    if (contains(own_, name)) return keep(name, place, node);
    if (known_anywhere(name)) {
      return fault(place + ": " + name + " is no setting of [" + program_ +
                   "]; move it to the table of the program that it is for");
    }
    fault(place + ": unknown setting " + quoted(name) + " in [" + program_ + "]" +
          hint(name, own_, "the program's --help lists its settings"));
  }

  void keep(const std::string& name, const std::string& place, const toml::node& node) {
    file_.values[name] = value_of(node, place);
  }

  void fault(std::string text) { file_.faults.push_back(std::move(text)); }

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

  std::string place_of(uint32_t line) const { return path_ + ":" + std::to_string(line); }

  const std::string& path_;
  const std::string& program_;
  const std::vector<std::string>& own_;
  ConfigFile file_;
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

Result<ConfigFile> read_config_file(const std::string& path, const std::string& program,
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
