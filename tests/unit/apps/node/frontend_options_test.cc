#include "apps/node/frontend_options.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

BOOST_AUTO_TEST_SUITE(frontend_options)

BOOST_AUTO_TEST_CASE(origins_are_checked_before_a_browser_meets_them) {
  for (const char* good : {"*", "https://app.example.org", "http://localhost:3000"}) {
    FrontendOptions options;
    options.cors_origins = {good};
    BOOST_TEST(check_frontend_options(options).ok(), good);
  }
  for (const char* bad : {"", "app.example.org", "https://app.example.org/", "HTTPS://a",
                          "https://", "https://a b", "https://*.a", "http://a?b"}) {
    FrontendOptions options;
    options.cors_origins = {bad};
    const Status status = check_frontend_options(options);
    BOOST_TEST((status.code() == StatusCode::kInvalidArgument), bad);
    BOOST_TEST(status.param() == "cors-origin");
  }
}

BOOST_AUTO_TEST_CASE(what_generates_cannot_be_opened) {
  FrontendOptions options;
  options.open_paths = {"/health", "/metrics", "/v1/models"};
  BOOST_TEST(check_frontend_options(options).ok());
  options.open_paths = {"/v1/chat/completions"};
  BOOST_TEST(check_frontend_options(options).message().find("/metrics") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_process_that_may_open_few_files_takes_fewer_connections) {
  FrontendOptions options;
  options.connections_max = 32;
  BOOST_TEST(frontend_limits(options, 77).connections_max == 32U);
  BOOST_TEST(frontend_limits(options, 77).generations_max == 77U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
