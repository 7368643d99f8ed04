#include "actors/gateway/responses/response_store.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

StoredResponse of_bytes(size_t bytes) {
  return {std::string(bytes, 'b'), "", ""};
}

BOOST_AUTO_TEST_CASE(the_least_recently_used_response_is_dropped_for_a_new_one) {
  ResponseStore store(2, 1000);
  store.put("a", of_bytes(1));
  store.put("b", of_bytes(1));
  BOOST_TEST((store.find("a") != nullptr));
  store.put("c", of_bytes(1));
  BOOST_TEST((store.find("b") == nullptr));
  BOOST_TEST((store.find("a") != nullptr));
  BOOST_TEST(store.size() == 2U);
}

BOOST_AUTO_TEST_CASE(bytes_are_bounded_too_and_what_never_fits_is_not_kept) {
  ResponseStore store(100, 100);
  for (const char* id : {"a", "b", "c"}) store.put(id, of_bytes(49));
  BOOST_TEST(store.bytes() == 100U);
  BOOST_TEST((store.find("a") == nullptr));
  store.put("d", of_bytes(100));
  BOOST_TEST((store.find("d") == nullptr));
  BOOST_TEST(store.size() == 2U);
  BOOST_TEST(store.erase("b"));
  BOOST_TEST(!store.erase("b"));
  BOOST_TEST(store.bytes() == 50U);
  BOOST_TEST((not_stored("b", "p").code() == StatusCode::kNotFound));
}

}  // namespace
}  // namespace troupe
