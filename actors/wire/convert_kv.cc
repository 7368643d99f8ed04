#include "actors/wire/convert.h"
#include "actors/wire/convert_common.h"

namespace troupe::wire::convert {

void write(const Reserved& in, schema::Reserved::Builder out) {
  out.setRequest(in.request.value);
  out.setAttempt(in.attempt);
  out.setReplyTo(in.reply_to);
  auto ticket = out.initTicket();
  ticket.setLanding(in.ticket.landing);
  ticket.setLabelHigh(in.ticket.label_high);
  ticket.setLabelLow(in.ticket.label_low);
  write_tokens(in.tokens, out.initTokens(static_cast<uint32_t>(in.tokens.size())));
  out.setCacheSalt(in.cache_salt);
  out.setFirstBlock(in.first_block);
  out.setDeadlineMs(static_cast<uint32_t>(in.deadline.count()));
  out.setLayers(in.layers);
  out.setBlockBytes(in.block_bytes);
  out.setModel(in.model);
  out.setWindowLayers(in.window_layers);
  out.setWindow(in.window);
  out.setKvType(static_cast<schema::KvType>(in.kv_type));
}

Reserved read(schema::Reserved::Reader in) {
  Reserved out;
  out.request = RequestId(in.getRequest());
  out.attempt = in.getAttempt();
  out.reply_to = in.getReplyTo().cStr();
  const auto ticket = in.getTicket();
  out.ticket = {ticket.getLanding(), ticket.getLabelHigh(), ticket.getLabelLow()};
  out.tokens = read_tokens(in.getTokens());
  out.cache_salt = in.getCacheSalt().cStr();
  out.first_block = in.getFirstBlock();
  out.deadline = std::chrono::milliseconds(in.getDeadlineMs());
  out.layers = in.getLayers();
  out.block_bytes = in.getBlockBytes();
  out.model = in.getModel().cStr();
  out.window_layers = in.getWindowLayers();
  out.window = in.getWindow();
  out.kv_type = read_kv_type(in.getKvType());
  return out;
}

void write(const Prefilled& in, schema::Prefilled::Builder out) {
  out.setLanding(in.landing);
  write(in.error, out.initError());
  out.setCachedTokens(in.cached_tokens);
  out.setComputeStartedNs(to_ns(in.compute_started));
  out.setComputeFinishedNs(to_ns(in.compute_finished));
  out.setFinishedNs(to_ns(in.finished));
}

Prefilled read(schema::Prefilled::Reader in) {
  Prefilled out;
  out.landing = in.getLanding();
  out.error = read(in.getError());
  out.cached_tokens = in.getCachedTokens();
  out.compute_started = from_ns(in.getComputeStartedNs());
  out.compute_finished = from_ns(in.getComputeFinishedNs());
  out.finished = from_ns(in.getFinishedNs());
  return out;
}

}  // namespace troupe::wire::convert
