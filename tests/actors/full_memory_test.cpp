/// Tests actor systems whose /dev/shm has no room. Each use of memory is refused before the memory
/// is touched, so there is an error and no SIGBUS.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include <weft/actor.hpp>

#include "tests/actors/actors.hpp"
#include "tests/support/expect_error.hpp"
#include "tests/support/small_shm.hpp"

namespace weft::full_memory_test {
namespace {

using testing::Echo;
using testing::echo;
using testing::expect_error;

constexpr const char* kFiller = "/dev/shm/filler";

/// Uses all memory that /dev/shm has left.
void fill() {
  const int file = ::open(kFiller, O_CREAT | O_WRONLY, 0600);
  ASSERT_GE(file, 0);
  const std::array<char, 4096> page{};
  while (::write(file, page.data(), page.size()) > 0) {
  }
  ::close(file);
}

TEST(FullMemory, RefusesASystem) {
  testing::in_own_shm(
      "size=64k", [] { expect_error(Errc::no_space, {"/dev/shm"}, [] { ActorSystem system; }); });
}

TEST(FullMemory, RefusesWhatNeedsMoreAndLetsTheRestGoOn) {
  testing::in_own_shm("size=64m", [] {
    ActorSystem system;
    const auto actors = system.spawn(echo, {.name = "echo"});
    EXPECT_EQ(actors[0].call<&Echo::add>(1, 2).get(), 3);
    fill();
    const std::string long_text(60'000, 'x');
    expect_error(Errc::no_space, {"/dev/shm"}, [&] { system.loan({DType::f32, {1 << 20}}); });
    expect_error(Errc::no_space, {"/dev/shm"}, [&] { system.pipe<int>(); });
    expect_error(Errc::no_space, {"/dev/shm"},
                 [&] { actors[0].call<&Echo::append>(long_text).get(); });
    expect_error(Errc::no_space, {"/dev/shm"}, [&] { actors[0].tell<&Echo::append>(long_text); });
    expect_error(Errc::no_space, {"/dev/shm"},
                 [&] { system.spawn(echo, {.name = "more", .count = 1000}); });
    expect_error(Errc::no_space, {"/dev/shm"},
                 [&] { system.spawn(echo, {.name = "away", .place = processes(1)}); });
    EXPECT_EQ(actors[0].call<&Echo::add>(3, 4).get(), 7);

    ::unlink(kFiller);
    system.loan({DType::f32, {1 << 20}});
    actors[0].call<&Echo::append>(long_text).get();
    EXPECT_EQ(actors[0].call<&Echo::log>().get(), long_text) << "the refused ones didn't run";
    EXPECT_EQ(
        system.spawn(echo, {.name = "away", .place = processes(1)})[0].call<&Echo::add>(1, 1).get(),
        2);
  });
}

}  // namespace
}  // namespace weft::full_memory_test
