#pragma once
// The settings of a program. One declaration gives the flag (--kv-memory-mib), the variable
// (TROUPE_KV_MEMORY_MIB) and the key of the TOML file (kv-memory-mib) with one type, range and help
// text. Precedence: flag, variable, the program's table in the file, the top of the file, default.
//
//   RouterOptions options;
//   Settings settings("router", "Troupe's router: ...", TROUPE_VERSION);
//   settings.add({.name = "port", .help = "Port for other nodes", .least = 1}, &options.port);
//   if (const Parsed parsed = settings.parse(argc, argv); !parsed.run) {
//     (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.output;
//     return parsed.exit_code;
//   }
//
// The file may serve all programs: what stands before the first table is common, and a table such
// as [router] or [serve] says it anew for one program. Each program checks the
// common part and its own table whole; setting_names.h lists what may stand in the common part.
//
// Every Settings also has --config FILE (TROUPE_CONFIG) and --print-config, which prints each
// setting as a line of TOML with where its value came from, and ends.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "troupe/status.h"

namespace CLI {
class App;
}

namespace troupe {

// The declaration of one setting. Its default is what its target holds when it is added.
struct Setting {
  std::string name;  // "kv-memory-mib"; must stand in setting_names.h
  std::string help;  // a phrase without full stop; says what 0 means where it means something
  // Of a number: both ends belong to the range. The type's own limits hold in any case.
  std::optional<double> least, most;
  std::vector<std::string> choices;  // of a text: empty means any
  bool required = false;             // must be set somewhere, and not to an empty text
  bool positional = false;           // may also be given on the command line without its flag
  // Comes from its variable alone: a command line is visible to every user of the machine, and
  // files get copied. Printed as "(hidden)".
  bool secret = false;
  // A secret that may also be given by its flag, where whoever starts the program knows that it is
  // visible; never in the file.
  bool secret_flag = false;
  bool commas = true;  // of a list: a flag's or variable's text is several values
  std::string alias;   // another spelling of the flag, without dashes; flags only
};

// Where a value goes. An optional stays empty, and prints as a comment, unless it is set. A list is
// written a,b,c in flags and variables (a flag may also be repeated), and as an array in the file.
// A bool's flag stands alone or as --name=false.
using SettingTarget =
    std::variant<bool*, uint16_t*, uint32_t*, uint64_t*, int32_t*, float*, std::optional<uint16_t>*,
                 double*, std::string*, std::vector<std::string>*>;

// What the program does next: run, or print `output` (on standard output if exit_code is 0, else on
// standard error) and end.
struct Parsed {
  bool run = false;
  int exit_code = 0;
  std::string output;
};

// Variables by name; only those that begin with TROUPE_ matter. One that is no setting of any
// program is a mistake, unless Kubernetes set it for a service called troupe.
using Environment = std::map<std::string, std::string>;

// Mistakes told of at once; of more, only the number.
inline constexpr size_t kFaultsShownMax = 20;

// "Did you mean --port?\n" for each argument that `command` could not take and that resembles a
// flag of it.
[[nodiscard]] std::string flag_hints(const CLI::App& command);

// Not thread-safe; used once, at the start of a program. Targets must outlive the parsing.
class Settings final {
 public:
  // A program of its own, `troupe-<program>`, with flags, --help and --version. `program` is the
  // name of its table in the file, one of kSettingTables.
  Settings(std::string program, const std::string& about, const std::string& version);
  // A command of a larger program, which parses the command line itself and then calls resolve().
  // `command` must outlive this object.
  Settings(std::string program, CLI::App& command);
  ~Settings();
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;

  void add(Setting setting, SettingTarget target);
  // Instead of the process's environment; for tests.
  void use_environment(Environment environment);

  // Reads the command line, the environment and the file, and writes all targets. Each mistake is
  // a line that names the place (flag, variable, FILE:LINE), the rule and the fix; all are told of
  // at once.
  [[nodiscard]] Parsed parse(int argc, const char* const* argv);
  // The same for a command whose command line has been parsed.
  [[nodiscard]] Parsed resolve();

  // "flag --threads", "variable TROUPE_THREADS", "cluster.toml:12" or "default"; after parsing.
  [[nodiscard]] std::string origin_of(std::string_view name) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe
