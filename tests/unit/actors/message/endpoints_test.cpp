#include <weft/actor/endpoints.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include <weft/actor/outcome.hpp>

namespace weft::endpoints_test {
namespace {

struct Observation {
  std::array<float, 4> state{};
  std::uint64_t seed = 0;
};
struct Policy {
  int act(const Observation& seen) const { return static_cast<int>(seen.seed); }
  void reset() {}
  std::string hello(std::string who, int times) noexcept { return who + std::to_string(times); }
  int hidden() { return 0; }
  using endpoints = Endpoints<&Policy::act, &Policy::reset, &Policy::hello>;
};

TEST(Endpoints, HaveSchemasThatNameFunctionArgumentsAndResult) {
  EXPECT_EQ(detail::endpoint_schema<&Policy::act>(), "act({f32[4],u64})->i32 const");
  EXPECT_EQ(detail::endpoint_schema<&Policy::reset>(), "reset()");
  EXPECT_EQ(detail::endpoint_schema<&Policy::hello>(), "hello(text,i32)->text");
}

TEST(Endpoints, AreNumberedInTheirOrder) {
  static_assert(detail::endpoint_index<&Policy::act, Policy::endpoints> == 0);
  static_assert(detail::endpoint_index<&Policy::hello, Policy::endpoints> == 2);
  static_assert(EndpointOf<&Policy::reset, Policy>);
  static_assert(!EndpointOf<&Policy::hidden, Policy>);
  static_assert(Policy::endpoints::kCount == 3);
}

TEST(Endpoints, TakeWhatTheirArgumentsAreMadeOf) {
  static_assert(Accepts<&Policy::act, Observation>);
  static_assert(Accepts<&Policy::hello, const char*, int>);
  static_assert(!Accepts<&Policy::hello, const char*>);
  static_assert(!Accepts<&Policy::act, int>);
  static_assert(std::is_same_v<ResultOf<&Policy::hello>, std::string>);
  static_assert(std::is_void_v<ResultOf<&Policy::reset>>);
}

TEST(Outcome, HasAValueOrAnError) {
  const Outcome<int> seven(7);
  EXPECT_TRUE(seven.ok());
  EXPECT_EQ(seven.value(), 7);
  const Outcome<int> late(Error(Errc::timeout, "late"));
  EXPECT_FALSE(late.ok());
  EXPECT_EQ(late.error().code(), Errc::timeout);
  EXPECT_THROW(late.value(), Error);
  EXPECT_TRUE(Outcome<void>().ok());
  EXPECT_THROW(Outcome<void>(Error(Errc::timeout, "late")).value(), Error);
}

}  // namespace
}  // namespace weft::endpoints_test
