#include "base/config/settings.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <map>

#include "tests/unit/base/config/scratch_file.h"

namespace troupe {
namespace {

struct Options {
  uint32_t threads = 0;
  uint64_t kv_memory_mib = 512;
  uint16_t port = 7000;
  std::string backend = "cpu";
  std::string model;
  std::vector<std::string> join;
  bool cluster = false;
  double drain_seconds = 30.0;
  std::optional<uint16_t> rpc_port;
  std::string secret;
};

struct Run {
  Options options;
  Parsed parsed;
  std::map<std::string, std::string> origins;
};

Run run(std::vector<const char*> flags, const Environment& environment = {},
        const std::string& program = "decode") {
  Run out;
  Options& options = out.options;
  Settings settings(program, "A worker.", "1.2.3");
  settings.use_environment(environment);
  settings.add({.name = "model", .help = "A GGUF file", .required = true, .positional = true},
               &options.model);
  settings.add({.name = "threads", .help = "Threads; 0: all", .least = 0, .most = 1024},
               &options.threads);
  settings.add({.name = "kv-memory-mib", .help = "MiB for KV", .alias = "kv-memory"},
               &options.kv_memory_mib);
  settings.add({.name = "port", .help = "Port", .least = 1}, &options.port);
  settings.add({.name = "backend", .help = "Backend", .choices = {"cpu", "reference"}},
               &options.backend);
  settings.add({.name = "join", .help = "Routers"}, &options.join);
  settings.add({.name = "cluster", .help = "Many processes"}, &options.cluster);
  settings.add({.name = "drain-seconds", .help = "Patience", .least = 0.5, .most = 3600},
               &options.drain_seconds);
  settings.add({.name = "rpc-port", .help = "RPC"}, &options.rpc_port);
  settings.add({.name = "secret", .help = "The secret", .secret = true}, &options.secret);
  flags.insert(flags.begin(), "troupe-decode");
  out.parsed = settings.parse(static_cast<int>(flags.size()), flags.data());
  for (const char* name : {"model", "threads", "kv-memory-mib", "port", "backend", "join",
                           "cluster", "drain-seconds", "secret"}) {
    out.origins[name] = settings.origin_of(name);
  }
  return out;
}

bool says(const Run& run, const std::string& part) {
  return run.parsed.output.find(part) != std::string::npos;
}

std::vector<std::string> texts(std::vector<std::string> list) {
  return list;
}

void check_refused(const Run& run, const std::string& part) {
  BOOST_TEST(!run.parsed.run);
  BOOST_TEST(run.parsed.exit_code != 0);
  BOOST_TEST(says(run, part), run.parsed.output << " lacks " << part);
}

BOOST_AUTO_TEST_CASE(without_anything_the_defaults_stand) {
  const Run got = run({"m.gguf"});
  BOOST_TEST(got.parsed.run, got.parsed.output);
  BOOST_TEST(got.options.threads == 0U);
  BOOST_TEST(got.options.kv_memory_mib == 512U);
  BOOST_TEST(got.options.backend == "cpu");
  BOOST_TEST(got.options.model == "m.gguf");
  BOOST_TEST(got.origins.at("threads") == "default");
  BOOST_TEST(got.origins.at("model") == "flag --model");
}

BOOST_AUTO_TEST_CASE(a_flag_goes_before_a_variable_before_the_table_before_the_top) {
  const ScratchFile file(
      "threads = 1\nport = 7001\nbackend = \"reference\"\n\n[decode]\n"
      "port = 7002\nthreads = 2\n[prefill]\nthreads = 9\n");
  const std::string path = file.path();
  const std::vector<const char*> with_file = {"m.gguf", "--config", path.c_str()};
  Run got = run(with_file);
  BOOST_TEST(got.parsed.run, got.parsed.output);
  BOOST_TEST(got.options.threads == 2U);
  BOOST_TEST(got.options.port == 7002);
  BOOST_TEST(got.options.backend == "reference");
  BOOST_TEST(got.origins.at("threads") == path + ":7");
  BOOST_TEST(got.origins.at("backend") == path + ":3");
  got = run(with_file, {{"TROUPE_THREADS", "3"}});
  BOOST_TEST(got.options.threads == 3U);
  BOOST_TEST(got.origins.at("threads") == "variable TROUPE_THREADS");
  std::vector<const char*> with_flag = with_file;
  with_flag.insert(with_flag.end(), {"--threads", "4"});
  got = run(with_flag, {{"TROUPE_THREADS", "3"}});
  BOOST_TEST(got.options.threads == 4U);
  BOOST_TEST(got.origins.at("threads") == "flag --threads");
  got = run({"m.gguf"}, {{"TROUPE_CONFIG", path}});
  BOOST_TEST(got.options.threads == 2U);
}

BOOST_AUTO_TEST_CASE(every_type_is_read_from_every_place) {
  const ScratchFile file(
      "model = \"a b.gguf\"\ncluster = true\njoin = [\"x:1\", \"y:2\"]\n"
      "drain-seconds = 2.5\nkv-memory-mib = 100000\n");
  const std::string path = file.path();
  Run got = run({"--config", path.c_str()});
  BOOST_TEST(got.parsed.run, got.parsed.output);
  BOOST_TEST(got.options.model == "a b.gguf");
  BOOST_TEST(got.options.cluster);
  BOOST_TEST((got.options.join == texts({"x:1", "y:2"})));
  BOOST_TEST(got.options.drain_seconds == 2.5);
  BOOST_TEST(got.options.kv_memory_mib == 100000U);
  got = run({}, {{"TROUPE_MODEL", "v.gguf"},
                 {"TROUPE_CLUSTER", "true"},
                 {"TROUPE_JOIN", "x:1, y:2"},
                 {"TROUPE_DRAIN_SECONDS", "4"},
                 {"TROUPE_KV_MEMORY_MIB", "7"}});
  BOOST_TEST(got.parsed.run, got.parsed.output);
  BOOST_TEST(got.options.model == "v.gguf");
  BOOST_TEST(got.options.cluster);
  BOOST_TEST((got.options.join == texts({"x:1", "y:2"})));
  BOOST_TEST(got.options.drain_seconds == 4.0);
  BOOST_TEST(got.options.kv_memory_mib == 7U);
  got = run({"--model", "f.gguf", "--cluster=false", "--join", "x:1,y:2", "--join=z:3",
             "--kv-memory", "8"},
            {{"TROUPE_CLUSTER", "true"}});
  BOOST_TEST(got.parsed.run, got.parsed.output);
  BOOST_TEST(got.options.model == "f.gguf");
  BOOST_TEST(!got.options.cluster);
  BOOST_TEST((got.options.join == texts({"x:1", "y:2", "z:3"})));
  BOOST_TEST(got.options.kv_memory_mib == 8U);
  BOOST_TEST(run({"m", "--cluster"}).options.cluster);
}

BOOST_AUTO_TEST_CASE(an_optional_is_empty_unless_it_is_set) {
  BOOST_TEST(!run({"m"}).options.rpc_port.has_value());
  BOOST_TEST(run({"m", "--rpc-port", "0"}).options.rpc_port.value() == 0);
  check_refused(run({"m", "--rpc-port", "65536"}),
                "--rpc-port must be a whole number from 0 to 65535");
  const ScratchFile file("rpc-port = true\n");
  const std::string path = file.path();
  check_refused(run({"m", "--config", path.c_str()}),
                ":1: rpc-port must be a whole number from 0 to 65535, not true or false\n");
  BOOST_TEST(says(run({"--print-config", "--rpc-port=9"}), "rpc-port = 9"));
}

BOOST_AUTO_TEST_CASE(a_list_may_be_one_text_in_the_file) {
  const ScratchFile file("join = \"x:1,y:2\"\n");
  const std::string path = file.path();
  BOOST_TEST((run({"m", "--config", path.c_str()}).options.join == texts({"x:1", "y:2"})));
}

BOOST_AUTO_TEST_CASE(a_value_that_breaks_its_rule_is_named_with_its_place) {
  check_refused(run({"m", "--threads", "1025"}),
                "--threads must be a whole number from 0 to 1024, not \"1025\"");
  check_refused(run({"m", "--threads", "-1"}), "--threads must be");
  check_refused(run({"m", "--threads", "4x"}), "--threads must be");
  check_refused(run({"m"}, {{"TROUPE_PORT", "0"}}),
                "TROUPE_PORT must be a whole number from 1 to 65535, not \"0\"");
  check_refused(run({"m"}, {{"TROUPE_PORT", "65536"}}), "TROUPE_PORT");
  check_refused(run({"m"}, {{"TROUPE_PORT", ""}}), "TROUPE_PORT");
  check_refused(run({"m"}, {{"TROUPE_DRAIN_SECONDS", "nan"}}),
                "TROUPE_DRAIN_SECONDS must be a number from 0.5 to 3600");
  check_refused(run({"m"}, {{"TROUPE_CLUSTER", "yes"}}), "must be true or false, not \"yes\"");
  check_refused(run({"m", "--backend", "refrence"}),
                "one of cpu, reference, not \"refrence\"; did you mean \"reference\"?");
  check_refused(run({"m", "--join", "a,,b"}), "--join must be a list");
}

BOOST_AUTO_TEST_CASE(a_value_of_the_wrong_type_in_the_file_is_named_with_its_line) {
  const auto refuse = [](const std::string& text, const std::string& part) {
    const ScratchFile file(text);
    const std::string path = file.path();
    check_refused(run({"m", "--config", path.c_str()}), path + part);
  };
  refuse("\n\nthreads = \"four\"\n",
         ":3: threads must be a whole number from 0 to 1024, not a text; write for example "
         "threads = 0");
  refuse("threads = 1.5\n", ":1: threads must be");
  refuse("threads = 2000\n", ":1: threads must be");
  refuse("backend = 3\n", ":1: backend must be one of cpu, reference, not a whole number");
  refuse("cluster = \"true\"\n", ":1: cluster must be true or false, not a text");
  refuse("join = [1, 2]\n", ":1: join must be a list");
  refuse("[decode]\nmodel = 1979-05-27\n", ":2: model must be a text, not a table, a date");
  refuse("threads.x = 1\n", ":1: threads must be");
}

BOOST_AUTO_TEST_CASE(a_mistake_in_the_file_is_told_even_if_a_flag_overrides_it) {
  const ScratchFile file("threads = -1\n");
  const std::string path = file.path();
  check_refused(run({"m", "--threads", "3", "--config", path.c_str()}), ":1: threads");
}

BOOST_AUTO_TEST_CASE(an_unknown_flag_brings_the_nearest_one) {
  const Run got = run({"m", "--thread", "4"});
  check_refused(got, "--thread");
  check_refused(got, "Did you mean --threads?");
}

BOOST_AUTO_TEST_CASE(all_mistakes_are_told_of_at_once_each_with_its_place) {
  const ScratchFile file("thraeds = 1\ncluster = 3\n[decode]\nthreads = 2000\nbackend = 5\n");
  const std::string path = file.path();
  const Environment environment = {{"TROUPE_PROT", "8"}, {"TROUPE_DRAIN_SECONDS", "-1"}};
  Run got = run({"m", "--config", path.c_str(), "--port", "0"}, environment);
  BOOST_TEST(!got.parsed.run);
  BOOST_TEST(got.parsed.exit_code == 1);
  for (const std::string& part : std::vector<std::string>{
           "troupe-decode: 7 mistakes in the settings\n",
           path + ":1: unknown setting \"thraeds\"; did you mean threads?\n",
           path + ":2: cluster must be", path + ":4: threads must be", path + ":5: backend must be",
           "  TROUPE_PROT: no setting has this variable; did you mean TROUPE_PORT?\n",
           "  TROUPE_DRAIN_SECONDS must be", "  --port must be"}) {
    BOOST_TEST(says(got, part), got.parsed.output << " lacks " << part);
  }
  // A command line that cannot be read does not hide the rest.
  got = run({"m", "--config", path.c_str(), "--prot", "1", "--thraeds=2"}, environment);
  for (const char* part :
       {"Did you mean --port?\n", "Did you mean --threads?\n", ":4: threads", "TROUPE_PROT"}) {
    BOOST_TEST(says(got, part), got.parsed.output << " lacks " << part);
  }
}

BOOST_AUTO_TEST_CASE(of_very_many_mistakes_the_first_are_shown) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "unknown-" + std::to_string(i) + " = 1\n";
  const ScratchFile file(text);
  const std::string path = file.path();
  const Run got = run({"m", "--config", path.c_str()});
  check_refused(got, "1000 mistakes");
  BOOST_TEST(says(got, path + ":1: unknown setting \"unknown-0\""));
  BOOST_TEST(std::count(got.parsed.output.begin(), got.parsed.output.end(), '\n') ==
             static_cast<std::ptrdiff_t>(kFaultsShownMax + 1));
}

BOOST_AUTO_TEST_CASE(a_variable_that_no_program_has_is_refused) {
  check_refused(run({"m"}, {{"TROUPE_THRAEDS", "1"}}), "did you mean TROUPE_THREADS?");
  check_refused(run({"m"}, {{"TROUPE_XYZZY", "1"}}), "TROUPE_XYZZY: no setting has this variable");
  BOOST_TEST(run({"m"}, {{"TROUPE_HTTP_PORT", "router's"}, {"PATH", "/bin"}}).parsed.run);
}

BOOST_AUTO_TEST_CASE(what_kubernetes_sets_for_a_service_of_this_name_is_no_setting) {
  const Run got = run({"m"}, {{"TROUPE_SERVICE_HOST", "10.0.0.1"},
                              {"TROUPE_SERVICE_PORT", "8000"},
                              {"TROUPE_SERVICE_PORT_HTTP", "8000"},
                              {"TROUPE_PORT", "tcp://10.0.0.1:8000"},
                              {"TROUPE_PORT_8000_TCP", "tcp://10.0.0.1:8000"},
                              {"TROUPE_PORT_8000_TCP_PROTO", "tcp"},
                              {"TROUPE_PORT_8000_TCP_PORT", "8000"},
                              {"TROUPE_ROUTER_PORT_8001_TCP_ADDR", "10.0.0.2"},
                              {"TROUPE_ROUTER_SERVICE_HOST", "10.0.0.2"}});
  BOOST_TEST(got.parsed.run, got.parsed.output);
  BOOST_TEST(got.options.port == 7000);
  check_refused(run({"m"}, {{"TROUPE_PORT_X_TCP", "1"}}), "TROUPE_PORT_X_TCP");
}

BOOST_AUTO_TEST_CASE(what_is_required_and_set_nowhere_is_asked_for) {
  check_refused(run({}), "model is not set; give --model, the variable TROUPE_MODEL, or model");
  check_refused(run({}, {{"TROUPE_MODEL", ""}}), "model is not set");
}

BOOST_AUTO_TEST_CASE(print_config_shows_each_value_with_its_origin_and_no_secret) {
  const ScratchFile file("threads = 2\n");
  const std::string path = file.path();
  const Run got = run({"--print-config", "--port", "7005", "--config", path.c_str()},
                      {{"TROUPE_KV_MEMORY_MIB", "64"}, {"TROUPE_SECRET", "correct horse battery"}});
  BOOST_TEST(!got.parsed.run);
  BOOST_TEST(got.parsed.exit_code == 0);
  BOOST_TEST(got.parsed.output ==
             "[decode]\n"
             "model = \"\"           # default\n"
             "threads = 2          # " +
                 path +
                 ":1\n"
                 "kv-memory-mib = 64   # variable TROUPE_KV_MEMORY_MIB\n"
                 "port = 7005          # flag --port\n"
                 "backend = \"cpu\"      # default\n"
                 "join = []            # default\n"
                 "cluster = false      # default\n"
                 "drain-seconds = 30   # default\n"
                 "# rpc-port is not set\n"
                 "# secret = \"(hidden)\"  # variable TROUPE_SECRET\n");
}

BOOST_AUTO_TEST_CASE(what_print_config_prints_can_be_read_back) {
  Run got = run({"--print-config", "--model", "a \"b\"\\\n.gguf", "--join", "x,y"});
  BOOST_TEST(got.parsed.exit_code == 0);
  BOOST_TEST(says(got, "# secret is not set"));
  const ScratchFile file(got.parsed.output);
  const std::string path = file.path();
  got = run({"--config", path.c_str()});
  BOOST_TEST(got.parsed.run, got.parsed.output);
  BOOST_TEST(got.options.model == "a \"b\"\\\n.gguf");
  BOOST_TEST((got.options.join == texts({"x", "y"})));
}

BOOST_AUTO_TEST_CASE(a_secret_comes_by_its_variable_alone) {
  BOOST_TEST(run({"m"}, {{"TROUPE_SECRET", "hush"}}).options.secret == "hush");
  check_refused(run({"m", "--secret", "hush"}), "--secret");
  const ScratchFile file("secret = \"hush\"\n");
  const std::string path = file.path();
  const Run got = run({"m", "--config", path.c_str()});
  check_refused(got, ":1: secret may not stand in a file");
  BOOST_TEST(!says(got, "hush"));
}

BOOST_AUTO_TEST_CASE(help_and_version_end_well) {
  const Run help = run({"--help"});
  BOOST_TEST(!help.parsed.run);
  BOOST_TEST(help.parsed.exit_code == 0);
  for (const char* part :
       {"A worker.", "--threads UINT in [0 - 1024]=0", "--kv-memory-mib: TROUPE_KV_MEMORY_MIB",
        "--print-config", "TROUPE_SECRET", "--kv-memory"}) {
    BOOST_TEST(says(help, part), help.parsed.output << " lacks " << part);
  }
  const Run version = run({"--version"});
  BOOST_TEST(version.parsed.exit_code == 0);
  BOOST_TEST(version.parsed.output == "troupe-decode 1.2.3\n");
}

}  // namespace
}  // namespace troupe
