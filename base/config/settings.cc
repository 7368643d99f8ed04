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
constexpr int kPositionalsMax = 64;
constexpr const char* kDefaultOrigin = "default";

constexpr const char* kVariablePrefix = "TROUPE_";
constexpr const char* kConfigVariable = "TROUPE_CONFIG";

std::string variable_of(const std::string& name) {
  std::string out = kVariablePrefix;
  for (const char c : name) out += c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return out;
}

// Kubernetes tells each container of each service by variables that begin with the service's name:
// of a service `troupe`, TROUPE_SERVICE_HOST and _PORT, TROUPE_PORT (tcp://10.0.0.1:8000) and
// TROUPE_PORT_8000_TCP with more behind it.
bool is_service_link(std::string_view variable, std::string_view value) {
  if (variable.find("_SERVICE_HOST") != variable.npos) return true;
  if (variable.find("_SERVICE_PORT") != variable.npos) return true;
  if (value.starts_with("tcp://") || value.starts_with("udp://")) return true;
  const size_t port = variable.find("_PORT_");
  if (port == variable.npos) return false;
  const std::string_view rest = variable.substr(port + std::string_view("_PORT_").size());
  const size_t digits = rest.find_first_not_of("0123456789");
  return digits != rest.npos && digits > 0 &&
         (rest.substr(digits).starts_with("_TCP") || rest.substr(digits).starts_with("_UDP"));
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
    if (!entry.setting.secret || entry.setting.secret_flag) entry.option = add_flag(entry);
    set_footer();
  }

  void use_environment(Environment environment) { environment_ = std::move(environment); }

  Parsed parse(int argc, const char* const* argv) {
    try {
      command_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      std::ostringstream out, err;
      const int code = command_.exit(error, out, err);
      if (code == 0) return {false, code, out.str()};
      take_all();  // what the file and the variables have wrong
      const std::string others = faults_.empty() ? "" : faults_text();
      return {false, code, err.str() + flag_hints(command_) + others};
    }
    return resolve();
  }

  Parsed resolve() {
    take_all();
    if (!print_ && faults_.empty()) check_required();
    if (!faults_.empty()) return {false, kExitBadSettings, faults_text()};
    if (print_) return {false, 0, print()};
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
    if (!shown.empty() && !setting.secret) option->default_str(shown);
    if (std::holds_alternative<std::vector<std::string>*>(entry.target)) {
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
      // One value for each flag, but any number of them by their place.
      if (setting.positional) {
        option->expected(1, kPositionalsMax)->allow_extra_args();
      } else {
        option->expected(1);
      }
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
      if (!entry.setting.secret || entry.setting.secret_flag) continue;
      footer +=
          "\nBy variable alone: " + variable_of(entry.setting.name) + ": " + entry.setting.help;
    }
    command_.footer(footer);
  }

  [[nodiscard]] std::string command_name() const {
    return owned_ ? command_.get_name() : "troupe " + command_.get_name();
  }

  // From the lowest precedence to the highest, so that every mistake is found, overridden or not.
  void take_all() {
    const auto config = environment_.find(kConfigVariable);
    if (config_path_.empty() && config != environment_.end()) config_path_ = config->second;
    if (!config_path_.empty()) take_file();
    take_variables();
    for (Entry& entry : entries_) {
      if (entry.option == nullptr || entry.option->count() == 0) continue;
      const std::string flag = "--" + entry.setting.name;
      take(entry, flag, texts_of(entry, entry.option->results()), "flag " + flag);
    }
  }

  void take_variables() {
    std::map<std::string, std::string> known;  // variables of all programs, with their settings
    for (const std::string_view name : kSettingNames) {
      known.emplace(variable_of(std::string(name)), name);
    }
    known.emplace(kConfigVariable, "config");
    for (const auto& [variable, value] : environment_) {
      if (!variable.starts_with(kVariablePrefix) || is_service_link(variable, value)) continue;
      const auto found = known.find(variable);
      if (found == known.end()) {
        fault(variable + ": no setting has this variable" + variable_hint(variable, known));
        continue;
      }
      Entry* entry = find(found->second);
      if (entry == nullptr) continue;  // another program's
      take(*entry, variable, texts_of(*entry, {value}), "variable " + variable);
    }
  }

  static std::string variable_hint(const std::string& variable,
                                   const std::map<std::string, std::string>& known) {
    std::vector<std::string> names;
    for (const auto& [name, setting] : known) names.push_back(name);
    const auto near = nearest(variable, names);
    return near ? "; did you mean " + *near + "?" : "; unset it";
  }

  void take_file() {
    std::vector<std::string> own;
    for (const Entry& entry : entries_) own.push_back(entry.setting.name);
    Result<ConfigFile> file = read_config_file(config_path_, program_, own);
    if (!file.ok()) return fault(file.status().message());
    for (std::string& text : file->faults) fault(std::move(text));
    for (const auto& [name, value] : file->values) {
      Entry* entry = find(name);
      TROUPE_ASSERT(entry != nullptr, name);
      const std::string subject = value.place + ": " + name;
      if (entry->setting.secret) {
        fault(subject + " may not stand in a file that gets copied; give it by the variable " +
              variable_of(name));
      } else if (!fits(value, entry->target)) {
        fault(subject + " must be " + rule_of(entry->setting, entry->target) + ", not " +
              to_string(value.kind) + example(name, entry->target));
      } else {
        take(*entry, subject,
             value.kind == FileValue::Kind::kText ? texts_of(*entry, value.texts) : value.texts,
             value.place);
      }
    }
  }

  void take(Entry& entry, const std::string& subject, const std::vector<std::string>& texts,
            const std::string& origin) {
    const Status status = assign_texts(entry, subject, texts);
    if (!status.ok()) return fault(status.message());
    entry.origin = origin;
  }

  void fault(std::string text) { faults_.push_back(std::move(text)); }

  // One line: "troupe-decode: TEXT"; more: a first line with their number and one for each.
  [[nodiscard]] std::string faults_text() const {
    TROUPE_ASSERT(!faults_.empty());
    if (faults_.size() == 1) return command_name() + ": " + faults_.front() + "\n";
    std::string out =
        command_name() + ": " + std::to_string(faults_.size()) + " mistakes in the settings\n";
    for (size_t i = 0; i < std::min(faults_.size(), kFaultsShownMax); ++i) {
      out += "  " + faults_[i] + "\n";
    }
    return out;
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
      if (!entry.setting.commas) {
        out.push_back(text);
        continue;
      }
      for (std::string& part : split_list(text)) out.push_back(std::move(part));
    }
    return out;
  }

  void check_required() {
    for (const Entry& entry : entries_) {
      const std::string& name = entry.setting.name;
      if (!entry.setting.required || !flag_text_of(entry.target).empty()) continue;
      fault(name + " is not set; give --" + name + ", the variable " + variable_of(name) + ", or " +
            name + " in the file that --config names");
    }
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
  Environment environment_ = environment_variables(kVariablePrefix);
  std::vector<Entry> entries_;
  std::vector<std::string> faults_;
  std::string config_path_;
  bool print_ = false;
};

std::string flag_hints(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  std::string out;
  for (const std::string& argument : command.remaining()) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (!flag.starts_with("--")) continue;
    if (const auto near = nearest(flag, flags)) out += "Did you mean " + *near + "?\n";
  }
  return out;
}

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

void Settings::use_environment(Environment environment) {
  impl_->use_environment(std::move(environment));
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
