#include "base/metrics/frontend_metrics.h"

#include <prometheus/text_serializer.h>

namespace troupe {

FrontendMetrics::FrontendMetrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      responses_(prometheus::BuildCounter()
                     .Name("troupe_http_responses_total")
                     .Help("HTTP responses that were begun, by status.")
                     .Register(*registry_)),
      cuts_(prometheus::BuildCounter()
                .Name("troupe_clients_cut_total")
                .Help("Clients that were cut off, by what they did.")
                .Register(*registry_)),
      connections(prometheus::BuildGauge()
                      .Name("troupe_client_connections")
                      .Help("Connections of clients, HTTP and RPC.")
                      .Register(*registry_)
                      .Add({})),
      generations(prometheus::BuildGauge()
                      .Name("troupe_client_requests")
                      .Help("Requests of clients that are being generated.")
                      .Register(*registry_)
                      .Add({})),
      cut_unread(cuts_.Add({{"reason", "unread"}})),
      cut_slow_reader(cuts_.Add({{"reason", "slow_reader"}})),
      cut_slow_body(cuts_.Add({{"reason", "slow_body"}})),
      cut_slow_header(cuts_.Add({{"reason", "slow_header"}})),
      cut_connections(cuts_.Add({{"reason", "connections"}})) {}

void FrontendMetrics::count_response(uint32_t http_status) {
  // Adding what is there already gives it back.
  responses_.Add({{"code", std::to_string(http_status)}}).Increment();
}

std::string FrontendMetrics::serialize() const {
  return prometheus::TextSerializer().Serialize(registry_->Collect());
}

}  // namespace troupe
