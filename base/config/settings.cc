#include "base/config/settings.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>

#include "base/assert.h"
#include "base/config/config_file.h"
#include "base/config/nearest.h"
#include "base/config/setting_names.h"
#include "base/config/setting_value.h"
#include "base/os/environment.h"

namespace troupe {
namespace {

constexpr int kExitBadSettings = 1;
constexpr const char* kDefaultOrigin = "default";

std::string variable_of(const std::string& name) {
  std::string out = "TROUPE_";
  for (const char c : name) out += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return out;
}

// Whether a value of the file has the type of the setting.
bool fits(const FileValue& value, const SettingTarget& target) {
  using Kind = FileValue::Kind;
  if (std::holds_alternative<bool*>(target)) return value.kind == Kind::kTruth;
  if (std::holds_alternative<std::string*>(target)) return value.kind == Kind::kText;
  if (std::holds_alternative<std::vector<std::string>*>(target)) {
    return value.kind == Kind::kTexts || value.kind == Kind::kText;
  }
  const bool takes_fractions =
      std::holds_alternative<float*>(target) || std::holds_alternative<double*>(target);
  return value.kind == Kind::kWhole || (takes_fractions && value.kind == Kind::kNumber);
}

std::string example(const std::string& name, const SettingTarget& target) {
  const std::string value = toml_of(target);
  return value.empty() ? "" : "; write for example " + name + " = " + value;
}

}  // namespace

class Settings::Impl {
 public:
  Impl(std::string program, CLI::App& command, std::unique_ptr<CLI::App> owned)
      : program_(std::move(program)), owned_(std::move(owned)), command_(command) {
    TROUPE_ASSERT(
        std::find(kSettingTables.begin(), kSettingTables.end(), program_) != kSettingTables.end(),
        program_);
    command_
        .add_option("--config", config_path_, "TOML file with settings; variable TROUPE_CONFIG")
        ->type_name("FILE");
    command_.add_flag("--print-config", print_,
                      "Print each setting and where its value came from, and end");
  }

  void add(Setting setting, SettingTarget target) {
    TROUPE_ASSERT(
        std::find(kSettingNames.begin(), kSettingNames.end(), setting.name) != kSettingNames.end(),
        setting.name);
    TROUPE_ASSERT(find(setting.name) == nullptr, setting.name);
    Entry& entry = entries_.emplace_back();
    entry.setting = std::move(setting);
    entry.target = target;
    if (!entry.setting.secret) entry.option = add_flag(entry);
    set_footer();
  }

  void use_environment(EnvironmentLookup lookup) { environment_ = std::move(lookup); }

  Parsed parse(int argc, const char* const* argv) {
    try {
      command_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      std::ostringstream out, err;
      const int code = command_.exit(error, out, err);
      return {false, code, code == 0 ? out.str() : err.str() + flag_hint(error)};
    }
    return resolve();
  }

  Parsed resolve() {
    if (const Status status = take_all(); !status.ok()) {
      return {false, kExitBadSettings, command_name() + ": " + status.message() + "\n"};
    }
    if (print_) return {false, 0, print()};
    if (const Status status = check_required(); !status.ok()) {
      return {false, kExitBadSettings, command_name() + ": " + status.message() + "\n"};
    }
    return {true, 0, ""};
  }

  [[nodiscard]] std::string origin_of(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.setting.name == name) return entry.origin;
    }
    TROUPE_ASSERT(false, std::string(name));
    return "";
  }

 private:
  struct Entry {
    Setting setting;
    SettingTarget target;
    CLI::Option* option = nullptr;  // none for secrets
    std::string origin = kDefaultOrigin;
  };

  CLI::Option* add_flag(const Entry& entry) {
    const Setting& setting = entry.setting;
    std::string names = "--" + setting.name;
    if (!setting.alias.empty()) names += ",--" + setting.alias;
    const std::string help = setting.help + (setting.required ? " (required)" : "");
    if (std::holds_alternative<bool*>(entry.target)) return command_.add_flag(names, help);
    CLI::Option* option =
        command_.add_option(setting.positional ? setting.name + "," + names : names, help);
    option->type_name(type_label(setting, entry.target));
    const std::string shown = flag_text_of(entry.target);
    if (!shown.empty()) option->default_str(shown);
    if (std::holds_alternative<std::vector<std::string>*>(entry.target)) {
      option->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    return option;
  }

  void set_footer() {
    std::string name = "config";
    for (const Entry& entry : entries_) {
      if (entry.setting.secret) continue;
      name = entry.setting.name;
      if (name.find('-') != std::string::npos) break;  // shows what becomes of the dash
    }
    std::string footer = "Settings also come from variables (--" + name + ": " + variable_of(name) +
                         ")\nand from the file that --config names; a flag goes before a variable, "
                         "that before the file.";
    for (const Entry& entry : entries_) {
      if (!entry.setting.secret) continue;
      footer +=
          "\nBy variable alone: " + variable_of(entry.setting.name) + ": " + entry.setting.help;
    }
    command_.footer(footer);
  }

  [[nodiscard]] std::string command_name() const {
    return owned_ ? command_.get_name() : "troupe " + command_.get_name();
  }

  [[nodiscard]] std::string flag_hint(const CLI::ParseError& error) const {
    const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error);
    if (extras == nullptr) return "";
    std::vector<std::string> flags;
    for (const CLI::Option* option : command_.get_options()) {
      for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
    }
    for (const std::string& argument : command_.remaining()) {
      const std::string flag = argument.substr(0, argument.find('='));
      if (!flag.starts_with("--")) continue;
      if (const auto near = nearest(flag, flags)) return "Did you mean " + *near + "?\n";
    }
    return "";
  }

  // From the lowest precedence to the highest, so that every mistake is found, overridden or not.
  Status take_all() {
    if (config_path_.empty()) config_path_ = environment_("TROUPE_CONFIG").value_or("");
    if (!config_path_.empty()) TROUPE_RETURN_IF_ERROR(take_file());
    for (Entry& entry : entries_) {
      const std::string variable = variable_of(entry.setting.name);
      if (const auto value = environment_(variable)) {
        TROUPE_RETURN_IF_ERROR(assign_texts(entry, variable, texts_of(entry, {*value})));
        entry.origin = "variable " + variable;
      }
    }
    for (Entry& entry : entries_) {
      if (entry.option == nullptr || entry.option->count() == 0) continue;
      const std::string flag = "--" + entry.setting.name;
      TROUPE_RETURN_IF_ERROR(assign_texts(entry, flag, texts_of(entry, entry.option->results())));
      entry.origin = "flag " + flag;
    }
    return ok_status();
  }

  Status take_file() {
    std::vector<std::string> own;
    for (const Entry& entry : entries_) own.push_back(entry.setting.name);
    TROUPE_ASSIGN_OR_RETURN(const auto values, read_config_file(config_path_, program_, own));
    for (const auto& [name, value] : values) {
      Entry* entry = find(name);
      TROUPE_ASSERT(entry != nullptr, name);
      const std::string subject = value.place + ": " + name;
      if (entry->setting.secret) {
        return invalid_argument(subject + " may not stand in a file that gets copied; give it by " +
                                "the variable " + variable_of(name));
      }
      if (!fits(value, entry->target)) {
        return invalid_argument(subject + " must be " + rule_of(entry->setting, entry->target) +
                                ", not " + to_string(value.kind) + example(name, entry->target));
      }
      TROUPE_RETURN_IF_ERROR(assign_texts(
          *entry, subject,
          value.kind == FileValue::Kind::kText ? texts_of(*entry, value.texts) : value.texts));
      entry->origin = value.place;
    }
    return ok_status();
  }

  // A secret's value stays out of the message about it.
  static Status assign_texts(const Entry& entry, const std::string& subject,
                             const std::vector<std::string>& texts) {
    Status status = assign(entry.setting, entry.target, subject, texts);
    if (status.ok() || !entry.setting.secret) return status;
    return invalid_argument(subject + " must be " + rule_of(entry.setting, entry.target));
  }

  static std::vector<std::string> texts_of(const Entry& entry,
                                           const std::vector<std::string>& given) {
    if (!std::holds_alternative<std::vector<std::string>*>(entry.target)) return {given.back()};
    std::vector<std::string> out;
    for (const std::string& text : given) {
      for (std::string& part : split_list(text)) out.push_back(std::move(part));
    }
    return out;
  }

  [[nodiscard]] Status check_required() const {
    for (const Entry& entry : entries_) {
      const std::string& name = entry.setting.name;
      if (!entry.setting.required || !flag_text_of(entry.target).empty()) continue;
      return invalid_argument(name + " is not set; give --" + name + ", the variable " +
                                  variable_of(name) + ", or " + name +
                                  " in the file that --config names",
                              name);
    }
    return ok_status();
  }

  [[nodiscard]] std::string print() const {
    std::vector<std::string> values;
    size_t width = 0;
    for (const Entry& entry : entries_) {
      const bool unset = entry.setting.secret && flag_text_of(entry.target).empty();
      values.push_back(unset ? "" : entry.setting.secret ? "\"(hidden)\"" : toml_of(entry.target));
      if (!values.back().empty()) {
        width = std::max(width, entry.setting.name.size() + values.back().size());
      }
    }
    std::string out = "[" + program_ + "]\n";
    for (size_t i = 0; i < entries_.size(); ++i) {
      const std::string& name = entries_[i].setting.name;
      if (values[i].empty()) {
        out += "# " + name + " is not set\n";
        continue;
      }
      if (entries_[i].setting.secret) out += "# ";  // has no place in a file
      out += name + " = " + values[i] + std::string(width - name.size() - values[i].size(), ' ') +
             "  # " + entries_[i].origin + "\n";
    }
    return out;
  }

  [[nodiscard]] Entry* find(const std::string& name) {
    for (Entry& entry : entries_) {
      if (entry.setting.name == name) return &entry;
    }
    return nullptr;
  }

  const std::string program_;
  std::unique_ptr<CLI::App> owned_;
  CLI::App& command_;
  EnvironmentLookup environment_ = environment_variable;
  std::vector<Entry> entries_;
  std::string config_path_;
  bool print_ = false;
};

Settings::Settings(std::string program, const std::string& about, const std::string& version) {
  auto app = std::make_unique<CLI::App>(about, "troupe-" + program);
  app->set_version_flag("--version", "troupe-" + program + " " + version);
  CLI::App& command = *app;
  impl_ = std::make_unique<Impl>(std::move(program), command, std::move(app));
}

Settings::Settings(std::string program, CLI::App& command)
    : impl_(std::make_unique<Impl>(std::move(program), command, nullptr)) {}

Settings::~Settings() = default;

void Settings::add(Setting setting, SettingTarget target) {
  impl_->add(std::move(setting), target);
}

void Settings::use_environment(EnvironmentLookup lookup) {
  impl_->use_environment(std::move(lookup));
}

Parsed Settings::parse(int argc, const char* const* argv) {
  return impl_->parse(argc, argv);
}

Parsed Settings::resolve() {
  return impl_->resolve();
}

std::string Settings::origin_of(std::string_view name) const {
  return impl_->origin_of(name);
}

}  // namespace troupe
