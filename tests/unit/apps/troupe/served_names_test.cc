#include "apps/troupe/served_names.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

using Names = std::vector<std::vector<std::string>>;

BOOST_AUTO_TEST_SUITE(served_names)

BOOST_AUTO_TEST_CASE(one_model_has_the_names_that_are_given_or_its_files) {
  BOOST_TEST((served_names_of({"/srv/a.gguf"}, {}).value() == Names{{"a"}}));
  BOOST_TEST((served_names_of({"/srv/a.gguf"}, {"x", "y=z"}).value() == Names{{"x", "y=z"}}));
}

BOOST_AUTO_TEST_CASE(of_several_models_each_name_says_whose_it_is) {
  BOOST_TEST(
      (served_names_of({"a.gguf", "b.gguf"}, {"b=x", "b=y"}).value() == Names{{"a"}, {"x", "y"}}));
  for (const char* bad : {"x", "c=x", "a", "a="}) {
    const auto names = served_names_of({"a.gguf", "b.gguf"}, {bad});
    BOOST_TEST((names.status().code() == StatusCode::kInvalidArgument), bad);
    BOOST_TEST(names.status().param() == "served-model-name");
  }
}

BOOST_AUTO_TEST_CASE(no_two_models_have_one_name) {
  BOOST_TEST(!served_names_of({"a.gguf", "b.gguf"}, {"b=a"}).ok());
  BOOST_TEST(!served_names_of({"x/a.gguf", "y/a.gguf"}, {}).ok());
  BOOST_TEST(!served_names_of({"a.gguf"}, {"x", "x"}).ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
