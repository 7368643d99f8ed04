// troupe-router: takes requests and places them on workers. The settings, and nothing else.

#include <iostream>

#include "apps/node/engine_options.h"
#include "apps/node/program.h"
#include "apps/troupe_router/router_program.h"
#include "base/config/settings.h"

namespace troupe {
namespace {

constexpr uint16_t kDefaultPort = 7000;

void declare(Settings& settings, RouterProgramOptions& options) {
  options.node.port = kDefaultPort;
  add_node_settings(settings, options.node);
  settings.add({.name = "http-host", .help = "Address to listen on for HTTP"}, &options.http_host);
  settings.add({.name = "http-port", .help = "Port for HTTP; 0: any free one"}, &options.http_port);
  settings.add(
      {.name = "rpc-port", .help = "Also serve Cap'n Proto RPC on this port; 0: any free one"},
      &options.rpc_port);
  add_served_name_setting(settings, "Names of a cluster's only model", options.served_names);
  add_chat_template_settings(settings, options.templates);
  add_frontend_settings(settings, options.frontend);
  add_answer_settings(settings, options.answers);
  settings.add({.name = "max-requests",
                .help = "Requests in flight; further ones get 429 at once",
                .least = 1,
                .most = 1 << 20},
               &options.requests_in_flight_max);
  settings.add({.name = "drain-seconds",
                .help = "How long a first SIGTERM lets running requests go on",
                .most = 86400},
               &options.drain_seconds);
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::init_program("troupe-router");
  troupe::RouterProgramOptions options;
  troupe::Settings settings("router",
                            "Takes the requests of a Troupe cluster and places them on its workers",
                            TROUPE_VERSION);
  troupe::declare(settings, options);
  if (const troupe::Parsed parsed = settings.parse(argc, argv); !parsed.run) {
    (parsed.exit_code == 0 ? std::cout : std::cerr) << parsed.output;
    return parsed.exit_code;
  }
  return troupe::exit_code_of("troupe-router", troupe::run_router(std::move(options)));
}
