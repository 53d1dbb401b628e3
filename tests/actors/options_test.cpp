/// Tests the errors for wrong options of an actor system and its meshes.

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"

namespace weft::options_test {
namespace {

using testing::Echo;
using testing::echo;
using testing::expect_error;

void refuse(const SpawnOptions& options, std::initializer_list<std::string_view> words,
            Errc code = Errc::invalid_argument) {
  ActorSystem system;
  expect_error(code, words, [&] { system.spawn(echo, options); });
}

TEST(ActorOptions, OfASystemAreChecked) {
  expect_error(Errc::invalid_argument, {"SystemOptions::name = \"a b\""},
               [] { ActorSystem system{{.name = "a b"}}; });
  expect_error(Errc::invalid_argument, {"SystemOptions::threads = 0: expected 1 to 16"},
               [] { ActorSystem system{{.threads = 0}}; });
  expect_error(Errc::invalid_argument, {"call_timeout_s = -1"},
               [] { ActorSystem system{{.call_timeout_s = -1}}; });
}

TEST(ActorOptions, OfAMeshAreChecked) {
  refuse({.name = "a/b"}, {"SpawnOptions::name = \"a/b\""});
  refuse({.count = 0}, {"\"test.echo\"", "count = 0: expected 1 to 65535"});
  refuse({.count = 2, .place = processes(3)}, {"processes(3) for 2 actors"});
  refuse({.count = 64, .own_thread = true}, {"64 actors", "expected at most 63"});
  refuse({.count = 62, .own_thread = true},
         {"62 more threads in this process", "which has room for 61"}, Errc::no_space);
  refuse({.supervision = {.max_restarts = -2}}, {"max_restarts = -2"});
  refuse({.supervision = {.within_s = std::numeric_limits<double>::quiet_NaN()}},
         {"within_s = nan"});
  refuse({.supervision = {.hang_timeout_s = 1}}, {"hang_timeout_s = 1", "processes(n)"});
}

TEST(ActorOptions, NamesAreUnique) {
  ActorSystem system;
  system.spawn(echo, {.name = "one"});
  expect_error(Errc::invalid_argument, {"has a mesh \"one\" already"},
               [&] { system.spawn(echo, {.name = "one"}); });
  const ActorType<Echo> second{"test.echo"};
  expect_error(Errc::invalid_argument,
               {"two actor types have the name \"test.echo\"", "actors.cpp:", "options_test.cpp:"},
               [&] { system.spawn(second); });
  const ActorType<Echo> wrong{"no name"};
  expect_error(Errc::invalid_argument, {"actor type \"no name\" (options_test.cpp:"},
               [&] { system.spawn(wrong); });
}

TEST(ActorOptions, ATypeMustBeKnownInTheOtherProcess) {
  ActorSystem system;
  const ActorType<Echo> local{"test.local"};
  expect_error(Errc::not_found, {"no actor type \"test.local\"", "namespace scope"},
               [&] { system.spawn(local, {.place = processes(1)}); });
}

}  // namespace
}  // namespace weft::options_test
