#include "apps/troupe/top.h"

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/compat/http.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <iostream>
#include <optional>

#include "apps/troupe/options.h"
#include "apps/troupe/top_table.h"

namespace troupe {
namespace {

constexpr kj::Duration kInterval = 1 * kj::SECONDS;
// For one answer, from connecting to its last byte.
constexpr kj::Duration kAnswerDeadline = 3 * kj::SECONDS;
constexpr uint64_t kAnswerBytesMax = uint64_t{16} << 20;
constexpr uint32_t kPlainPort = 80;

struct Answer {
  uint32_t status = 0;
  std::string body;
};

// The server's name and port of http://HOST[:PORT].
Result<std::string> address_of(const std::string& url) {
  constexpr std::string_view kScheme = "http://";
  const Status wrong = invalid_argument("\"" + url + "\" is no address of a router or monitor; " +
                                        "write http://HOST:PORT");
  if (!url.starts_with(kScheme)) return wrong;
  std::string address = url.substr(kScheme.size());
  if (address.ends_with('/')) address.pop_back();
  if (address.empty() || address.find_first_of("/?#@ ") != std::string::npos) return wrong;
  return address;
}

class Server {
 public:
  Server(kj::AsyncIoContext& io, std::string url, std::string address)
      : io_(io), url_(std::move(url)), address_(std::move(address)) {}

  // The lines of one picture, or why there is none.
  Result<std::vector<std::string>> picture() {
    std::optional<Answer> answer;
    std::string why;
    auto fetched = fetch().then([&](Answer&& got) { answer = std::move(got); },
                                [&](kj::Exception&& e) { why = e.getDescription().cStr(); });
    auto late = io_.provider->getTimer().afterDelay(kAnswerDeadline).then([&] {
      why = "no answer within " + std::to_string(kAnswerDeadline / kj::SECONDS) + " s";
    });
    fetched.exclusiveJoin(kj::mv(late)).wait(io_.waitScope);
    if (!answer) {
      return Status(StatusCode::kUnavailable,
                    "cannot reach " + url_ + " (" + why + "); start a cluster with " +
                        "`troupe serve --cluster MODEL`, or name the HTTP address of a router or " +
                        "monitor");
    }
    if (answer->status != 200) {
      return Status(StatusCode::kNotFound,
                    url_ + " answers " + std::to_string(answer->status) +
                        " to /cluster: it is neither a router nor a monitor");
    }
    return top_table(url_, answer->body);
  }

 private:
  kj::Promise<Answer> fetch() {
    return io_.provider->getNetwork()
        .parseAddress(address_, kPlainPort)
        .then([this](kj::Own<kj::NetworkAddress> address) {
          auto client = kj::newHttpClient(io_.provider->getTimer(), headers_, *address);
          kj::HttpHeaders headers(headers_);
          headers.set(kj::HttpHeaderId::HOST, address_);
          auto request = client->request(kj::HttpMethod::GET, "/cluster", headers, uint64_t{0});
          auto answer = request.response.then([](kj::HttpClient::Response&& response) {
            const uint32_t status = response.statusCode;
            auto text = response.body->readAllText(kAnswerBytesMax);
            return text.attach(kj::mv(response.body)).then([status](kj::String&& body) {
              return Answer{status, std::string(body.begin(), body.size())};
            });
          });
          // Whoever is referred to is destroyed after who refers to it.
          return answer.attach(kj::mv(request.body)).attach(kj::mv(client)).attach(kj::mv(address));
        });
  }

  kj::AsyncIoContext& io_;
  const std::string url_, address_;
  kj::HttpHeaderTable headers_;
};

// Draws over the former picture; lines are cut at the window's edges.
void draw(const std::vector<std::string>& lines) {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row < 2 || window.ws_col == 0) {
    window.ws_row = 24;
    window.ws_col = 80;
  }
  const size_t shown = std::min<size_t>(lines.size(), window.ws_row - 1U);
  std::string out = "\x1b[H";
  for (size_t i = 0; i < shown; ++i) {
    // A window narrower than the table wraps nothing: the terminal cuts.
    out += lines[i] + "\x1b[K\n";
  }
  std::cout << out << "\x1b[J" << std::flush;
}

class LiveScreen {
 public:
  // Another page of the terminal, no cursor, no wrapping of long lines.
  LiveScreen() { std::cout << "\x1b[?1049h\x1b[?25l\x1b[?7l" << std::flush; }
  ~LiveScreen() { std::cout << "\x1b[?7h\x1b[?25h\x1b[?1049l" << std::flush; }
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;
};

void watch(Server& server, kj::AsyncIoContext& io) {
  const LiveScreen screen;
  bool ended = false;
  auto signal = io.unixEventPort.onSignal(SIGINT)
                    .exclusiveJoin(io.unixEventPort.onSignal(SIGTERM))
                    .then([&ended](siginfo_t&&) { ended = true; })
                    .fork();
  while (!ended) {
    const auto picture = server.picture();
    draw(picture.ok() ? picture.value() : std::vector<std::string>{picture.status().message()});
    signal.addBranch()
        .exclusiveJoin(io.provider->getTimer().afterDelay(kInterval))
        .wait(io.waitScope);
  }
}

}  // namespace

int run_top(const TopOptions& options) {
  const auto address = address_of(options.url);
  if (!address.ok()) return fail(address.status());
  const bool live = !options.once && isatty(STDOUT_FILENO) == 1;
  if (live) {
    kj::UnixEventPort::captureSignal(SIGINT);
    kj::UnixEventPort::captureSignal(SIGTERM);
  }
  kj::AsyncIoContext io = kj::setupAsyncIo();
  Server server(io, options.url, address.value());
  if (live) {
    watch(server, io);
    return 0;
  }
  const auto picture = server.picture();
  if (!picture.ok()) return fail(picture.status());
  for (const std::string& line : picture.value()) std::cout << line << '\n';
  return 0;
}

}  // namespace troupe
