#include "actors/wire/codec.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <cstring>

#include "actors/wire/convert.h"
#include "base/assert.h"

namespace troupe::wire {
namespace {

void write(const Message& message, schema::Message::Builder out) {
  struct Visitor {
    schema::Message::Builder out;
    void operator()(const Accepted& m) {
      convert::write(m.request, out.initAccepted().initRequest());
    }
    void operator()(const Routed& m) { convert::write(m, out.initRouted()); }
    void operator()(const Rejected& m) { convert::write(m, out.initRejected()); }
    void operator()(const Cancelled& m) { convert::write(m, out.initCancelled()); }
    void operator()(const Emitted& m) { convert::write(m, out.initEmitted()); }
    void operator()(const Finished& m) { convert::write(m, out.initFinished()); }
    void operator()(const Heartbeat& m) { convert::write(m, out.initHeartbeat()); }
    void operator()(const Health& m) { convert::write(m, out.initHealth()); }
    void operator()(const Reserved& m) { convert::write(m, out.initReserved()); }
    void operator()(const Prefilled& m) { convert::write(m, out.initPrefilled()); }
    void operator()(const Released& m) { out.initReleased().setLanding(m.landing); }
    void operator()(const Refused& m) { out.initRefused().setReason(m.reason); }
    void operator()(const Observe& m) { out.initObserve().setEndpoint(m.endpoint); }
    void operator()(const Describe& m) { out.initDescribe().setReplyTo(m.reply_to); }
    void operator()(const Described& m) { convert::write(m, out.initDescribed()); }
  };
  std::visit(Visitor{out}, message);
}

Result<Message> read(schema::Message::Reader in) {
  switch (in.which()) {
    case schema::Message::ACCEPTED:
      return Message(Accepted{convert::read(in.getAccepted().getRequest())});
    case schema::Message::ROUTED:
      return Message(convert::read(in.getRouted()));
    case schema::Message::REJECTED:
      return Message(convert::read(in.getRejected()));
    case schema::Message::CANCELLED:
      return Message(convert::read(in.getCancelled()));
    case schema::Message::EMITTED:
      return Message(convert::read(in.getEmitted()));
    case schema::Message::FINISHED:
      return Message(convert::read(in.getFinished()));
    case schema::Message::HEARTBEAT:
      return Message(convert::read(in.getHeartbeat()));
    case schema::Message::HEALTH:
      return Message(convert::read(in.getHealth()));
    case schema::Message::RESERVED:
      return Message(convert::read(in.getReserved()));
    case schema::Message::PREFILLED:
      return Message(convert::read(in.getPrefilled()));
    case schema::Message::RELEASED:
      return Message(Released{in.getReleased().getLanding()});
    case schema::Message::REFUSED:
      return Message(Refused{in.getRefused().getReason().cStr()});
    case schema::Message::OBSERVE:
      return Message(Observe{in.getObserve().getEndpoint().cStr()});
    case schema::Message::DESCRIBE:
      return Message(Describe{in.getDescribe().getReplyTo().cStr()});
    case schema::Message::DESCRIBED:
      return Message(convert::read(in.getDescribed()));
  }
  return Status{StatusCode::kUnsupported,
                "a message of kind " + std::to_string(static_cast<int>(in.which())) +
                    " is unknown to this build; run the same version on all nodes"};
}

}  // namespace

MessageWords encode(const Message& message) {
  capnp::MallocMessageBuilder builder;
  write(message, builder.initRoot<schema::Message>());
  const kj::Array<capnp::word> flat = capnp::messageToFlatArray(builder);
  static_assert(sizeof(capnp::word) == sizeof(uint64_t));
  MessageWords words(flat.size());
  std::memcpy(words.data(), flat.begin(), flat.size() * sizeof(uint64_t));
  return words;
}

Result<Message> decode(const MessageWords& words) {
  Result<Message> result = Status{StatusCode::kDataLoss,
                                  "a message could not be read; run the same version on all nodes"};
  const auto exception = kj::runCatchingExceptions([&] {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = words.size() * 4 + 1024;  // lists of structs count per element
    options.nestingLimit = 16;
    capnp::FlatArrayMessageReader reader(
        kj::arrayPtr(reinterpret_cast<const capnp::word*>(words.data()), words.size()), options);
    result = read(reader.getRoot<schema::Message>());
  });
  KJ_IF_MAYBE (e, exception) {
    return Status{StatusCode::kDataLoss, std::string("a message is truncated or corrupt (") +
                                             e->getDescription().cStr() +
                                             "); run the same version on all nodes"};
  }
  return result;
}

}  // namespace troupe::wire
