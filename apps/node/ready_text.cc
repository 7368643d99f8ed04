#include "apps/node/ready_text.h"

namespace troupe {

std::string ready_text(const std::string& host, uint16_t port, const std::string& model, bool chats,
                       bool needs_key) {
  const std::string url = "http://" + (host == "0.0.0.0" ? std::string("127.0.0.1") : host) + ":" +
                          std::to_string(port);
  return "curl " + url + (chats ? "/v1/chat/completions" : "/v1/completions") +
         " -H 'Content-Type: application/json'" +
         (needs_key ? " -H \"Authorization: Bearer $TROUPE_API_KEY\"" : "") + " -d '{\"model\":\"" +
         model + "\"," +
         (chats ? "\"messages\":[{\"role\":\"user\",\"content\":\"What is the capital of "
                  "France?\"}]"
                : "\"prompt\":\"The capital of France is\"") +
         ",\"temperature\":0}'";
}

}  // namespace troupe
