#include "transport/session/handshake.h"

#include <boost/test/unit_test.hpp>

#include "transport/session/limits.h"

namespace troupe {
namespace {

Secret secret(std::string_view text = "a secret that nobody knows") {
  return Secret::create(text).value();
}

// Two partners and what they say to each other.
struct Conversation {
  Conversation() {
    alice.record = {{"schema", "3"}, {"model", "aaa"}};
    bob.record = {{"schema", "3"}, {"model", "aaa"}, {"blocks", "16"}};
  }
  void begin() {
    connector.emplace(Handshake::Role::kConnector, alice_secret, alice, Nonce{1, 2, 3, 4});
    acceptor.emplace(Handshake::Role::kAcceptor, bob_secret, bob, Nonce{5, 6, 7, 8});
    to_bob = encode_frame(connector->hello());
  }
  // Lets both speak until neither has anything to say. `change` sees every frame on its way.
  void run(const std::function<void(Frame&)>& change = [](Frame&) {}) {
    begin();
    for (int turn = 0; turn < 4; ++turn) {
      deliver(to_bob, *acceptor, to_alice, change);
      if (acceptor->state() == Handshake::State::kProved)
        to_alice = encode_frame(acceptor->accept());
      deliver(to_alice, *connector, to_bob, change);
    }
  }
  static void deliver(std::string& bytes, Handshake& to, std::string& reply,
                      const std::function<void(Frame&)>& change) {
    FrameReader reader;
    reader.add(std::exchange(bytes, {}));
    for (auto frame = reader.next(); frame.ok() && frame.value(); frame = reader.next()) {
      change(*frame.value());
      if (to.state() == Handshake::State::kRunning) {
        static_cast<void>(to.on_frame(*frame.value(), reply));
      }
    }
  }
  [[nodiscard]] bool both_joined() const {
    return connector->state() == Handshake::State::kJoined &&
           acceptor->state() == Handshake::State::kJoined;
  }

  Secret alice_secret = secret(), bob_secret = secret();
  NodeIdentity alice{"10.0.0.1:7000", 5, {}, "alice's lane"};
  NodeIdentity bob{"10.0.0.2:7000", 6, {}, "bob's lane"};
  std::optional<Handshake> connector, acceptor;
  std::string to_alice, to_bob;
};

bool says(const Status& status, std::string_view text) {
  return status.message().find(text) != std::string::npos;
}

BOOST_AUTO_TEST_SUITE(handshake)

BOOST_AUTO_TEST_CASE(partners_with_one_secret_join_and_know_each_other) {
  Conversation talk;
  talk.run();
  BOOST_TEST(talk.both_joined());
  BOOST_TEST(talk.connector->partner().node == "10.0.0.2:7000");
  BOOST_TEST(talk.connector->partner().incarnation == 6U);
  BOOST_TEST(talk.connector->partner().lane_address == "bob's lane");
  BOOST_TEST((talk.acceptor->partner().record == talk.alice.record));
  BOOST_TEST(talk.connector->token_to_partner() == talk.acceptor->token_from_partner());
  BOOST_TEST(talk.connector->token_from_partner() == talk.acceptor->token_to_partner());
  BOOST_TEST(talk.connector->token_to_partner() != talk.connector->token_from_partner());
}

BOOST_AUTO_TEST_CASE(partners_with_different_secrets_both_say_so) {
  Conversation talk;
  talk.bob_secret = secret("another one, just as long");
  talk.run();
  BOOST_TEST(says(talk.connector->failure(), "the secret of node 10.0.0.2:7000 differs"));
  BOOST_TEST(says(talk.acceptor->failure(), "the secrets differ"));
  BOOST_TEST(!says(talk.connector->failure(), "a secret that nobody knows"));
}

BOOST_AUTO_TEST_CASE(both_sides_of_a_mismatch_name_the_field_and_both_values) {
  Conversation talk;
  talk.bob.record[1].second = "bbb";
  talk.run();
  BOOST_TEST(
      says(talk.connector->failure(), "model: this node has aaa, node 10.0.0.2:7000 has bbb"));
  BOOST_TEST(
      says(talk.acceptor->failure(), "model: this node has bbb, node 10.0.0.1:7000 has aaa"));
  BOOST_TEST(talk.connector->failure().param() == "model");
}

BOOST_AUTO_TEST_CASE(another_protocol_version_is_named) {
  Conversation talk;
  talk.run([](Frame& frame) {
    if (frame.kind == FrameKind::kHello) ++frame.payload[15];  // after the magic's 15 bytes
  });
  BOOST_TEST(says(talk.acceptor->failure(), "protocol version: this node has 1, the other has 2"));
  BOOST_TEST(says(talk.connector->failure(), "protocol version 1"));
}

// Whatever bit of whatever frame changes on the way, nobody joins by it.
BOOST_AUTO_TEST_CASE(no_changed_bit_goes_unnoticed) {
  for (int frame_index = 0; frame_index < 4; ++frame_index) {
    for (size_t position = 0;; position += 3) {
      Conversation talk;
      int seen = 0;
      bool changed = false;
      talk.run([&](Frame& frame) {
        if (seen++ != frame_index || position >= frame.payload.size()) return;
        frame.payload[position] = static_cast<char>(frame.payload[position] ^ 4);
        changed = true;
      });
      if (!changed) break;
      BOOST_TEST(!talk.both_joined(), "frame " << frame_index << ", byte " << position);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_replayed_proof_proves_nothing) {
  Conversation first;
  std::vector<std::string> heard;
  first.run([&](Frame& frame) { heard.push_back(encode_frame(frame)); });
  BOOST_REQUIRE(first.both_joined());
  // Somebody says the same to the same node, which draws another nonce.
  Handshake acceptor(Handshake::Role::kAcceptor, first.bob_secret, first.bob, Nonce{9, 9, 9, 9});
  std::string reply;
  Conversation::deliver(heard[0], acceptor, reply, [](Frame&) {});
  Conversation::deliver(heard[2], acceptor, reply, [](Frame&) {});
  BOOST_TEST((acceptor.state() == Handshake::State::kFailed));
}

// A stranger who lets the node prove the secret to itself.
BOOST_AUTO_TEST_CASE(a_reflected_challenge_is_no_proof) {
  Conversation talk;
  talk.begin();
  std::string reply;
  Conversation::deliver(talk.to_bob, *talk.acceptor, reply, [](Frame&) {});
  std::string ignored;
  Conversation::deliver(reply, *talk.acceptor, ignored,
                        [](Frame& frame) { frame.kind = FrameKind::kProof; });
  BOOST_TEST((talk.acceptor->state() == Handshake::State::kFailed));
}

BOOST_AUTO_TEST_CASE(a_duplicate_is_told_apart_from_an_error) {
  Conversation talk;
  talk.begin();
  const auto as_is = [](Frame&) {};
  Conversation::deliver(talk.to_bob, *talk.acceptor, talk.to_alice, as_is);
  Conversation::deliver(talk.to_alice, *talk.connector, talk.to_bob, as_is);
  Conversation::deliver(talk.to_bob, *talk.acceptor, talk.to_alice, as_is);
  BOOST_REQUIRE((talk.acceptor->state() == Handshake::State::kProved));
  talk.to_alice = encode_frame(talk.acceptor->refuse_as_duplicate());
  Conversation::deliver(talk.to_alice, *talk.connector, talk.to_bob, as_is);
  BOOST_TEST(talk.connector->is_duplicate());
  BOOST_TEST((talk.connector->failure().code() == StatusCode::kUnavailable));
}

BOOST_AUTO_TEST_CASE(frames_out_of_turn_and_truncated_ones_fail) {
  for (const FrameKind kind : {FrameKind::kChallenge, FrameKind::kProof, FrameKind::kAccept,
                               FrameKind::kRefuse, FrameKind::kPing, FrameKind::kPong}) {
    Conversation talk;
    talk.begin();
    std::string reply;
    static_cast<void>(talk.acceptor->on_frame({kind, "x"}, reply));
    BOOST_TEST((talk.acceptor->state() == Handshake::State::kFailed));
    BOOST_TEST(reply.empty());
  }
  for (size_t size = 0; size < 60; ++size) {
    Conversation talk;
    talk.begin();
    Frame hello = talk.connector->hello();
    hello.payload.resize(std::min(size, hello.payload.size() - 1));
    std::string reply;
    static_cast<void>(talk.acceptor->on_frame(hello, reply));
    BOOST_TEST((talk.acceptor->state() == Handshake::State::kFailed));
  }
}

BOOST_AUTO_TEST_CASE(secrets_and_records_have_limits) {
  BOOST_TEST(!Secret::create("too short").ok());
  BOOST_TEST(!Secret::create(std::string(limits::kSecretBytesMax + 1, 'x')).ok());
  BOOST_TEST(!check_record(CompatibilityRecord(limits::kRecordFieldsMax + 1)).ok());
  BOOST_TEST(!check_record({{"", "x"}}).ok());
  BOOST_TEST(!check_record({{"a", std::string(limits::kRecordValueBytesMax + 1, 'x')}}).ok());
  BOOST_TEST(check_record({{"a", "1"}, {"b", ""}}).ok());
}

BOOST_AUTO_TEST_CASE(the_mac_depends_on_how_the_parts_are_cut) {
  const Secret key = secret();
  BOOST_TEST((key.mac({"ab", "c"}) != key.mac({"a", "bc"})));
  BOOST_TEST((key.mac({"ab", "c"}) == key.mac({"ab", "c"})));
  BOOST_TEST((key.mac({"ab"}) != secret("another one, just as long").mac({"ab"})));
  BOOST_TEST(same_mac(key.mac({"x"}), bytes_of(key.mac({"x"}))));
  BOOST_TEST(!same_mac(key.mac({"x"}), bytes_of(key.mac({"x"})).substr(1)));
  BOOST_TEST(!same_mac(key.mac({"x"}), ""));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
