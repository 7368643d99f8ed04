// A small program around the client library: asks one question and prints the answer as it comes.
//
//   chat_client 127.0.0.1:9000 "What is the capital of France?"
//
// Start the server with `troupe serve MODEL --rpc-port 9000`.

#include <charconv>
#include <iostream>
#include <memory>
#include <string>

#include "troupe/client/client.h"

namespace client = troupe::client;

namespace {

// Every failure is a Status: its code says what one may do, its message is for people.
int fail(const troupe::Status& status) {
  std::cerr << "chat_client: " << status.message() << '\n';
  return 1;
}

int ask(client::Client& server, const std::string& question) {
  // Which model? This server's first one.
  const auto models = server.models();
  if (!models.ok()) return fail(models.status());
  if (models->empty()) return fail({troupe::StatusCode::kUnavailable, "no model yet; try again"});

  client::ChatRequest request;
  request.model = models->front().name;
  request.messages = {{"user", question}};
  request.parameters.temperature = 0;  // the same answer each time
  request.parameters.max_tokens = 100;

  // The answer in chunks, as fast as it is read. Leaving this function early would cancel it.
  auto stream = server.stream(request);
  if (!stream.ok()) return fail(stream.status());
  while (true) {
    const auto chunk = stream->next();
    if (!chunk.ok()) return fail(chunk.status());
    if (!chunk.value()) break;  // the end
    for (const client::Choice& choice : *chunk.value()) std::cout << choice.text << std::flush;
  }
  const client::Usage& usage = stream->answer().usage;
  std::cout << "\n(" << usage.prompt_tokens << " + " << usage.completion_tokens << " tokens)\n";
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string address = argc > 1 ? argv[1] : "";
  const size_t colon = address.rfind(':');
  uint16_t port = 0;
  if (argc != 3 || colon == std::string::npos ||
      std::from_chars(&address[colon + 1], &address[address.size()], port).ec != std::errc()) {
    std::cerr << "usage: chat_client HOST:PORT QUESTION\n";
    return 2;
  }
  const auto connected = client::Client::connect(address.substr(0, colon), port);
  if (!connected.ok()) return fail(connected.status());
  return ask(*connected.value(), argv[2]);
}
