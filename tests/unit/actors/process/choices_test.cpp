/// Tests options that are enums. Wrong literals are refused when a program is compiled. Texts from
/// outside are parsed; the error for a misspelled text suggests a value.

#include <string>
#include <string_view>
#include <type_traits>

#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <weft/job/config.hpp>

#include "tests/support/expect_error.hpp"

namespace weft::choices_test {
namespace {

using testing::expect_error;

template <typename Enum>
constexpr bool kTakesText = std::is_constructible_v<Choice<Enum>, const char*> ||
                            std::is_constructible_v<Choice<Enum>, const char (&)[6]> ||
                            std::is_constructible_v<Choice<Enum>, std::string> ||
                            std::is_constructible_v<Choice<Enum>, std::string_view> ||
                            std::is_convertible_v<const char*, Choice<Enum>>;
static_assert(!kTakesText<Restart> && !kTakesText<Backend> && !kTakesText<PartitioningMode> &&
              !kTakesText<PlacementStrategy> && !kTakesText<DebugMode>);

static_assert(std::is_convertible_v<Restart, Choice<Restart>>);
static_assert(!std::is_constructible_v<Choice<Restart>, Backend>);
static_assert(FailureConfig{.restart = Restart::group}.restart == Restart::group);

TEST(Choices, HaveTheTextsThatTheyAreReadFrom) {
  for (const auto restart : {Restart::worker, Restart::group, Restart::none}) {
    EXPECT_EQ(parse_restart(to_string(restart)), restart);
  }
  for (const auto backend : {Backend::none, Backend::spmd}) {
    EXPECT_EQ(parse_backend(to_string(backend)), backend);
  }
  for (const auto strategy : {PlacementStrategy::pack, PlacementStrategy::spread,
                              PlacementStrategy::strict_pack, PlacementStrategy::strict_spread}) {
    EXPECT_EQ(parse_placement_strategy(to_string(strategy)), strategy);
  }
  for (const auto mode : {DebugMode::none, DebugMode::eager}) {
    EXPECT_EQ(parse_debug_mode(to_string(mode)), mode);
  }
  EXPECT_EQ(parse_partitioning_mode(to_string(PartitioningMode::automatic)),
            PartitioningMode::automatic);
}

TEST(Choices, KeepTheNamesOfRayAndTorchXla) {
  EXPECT_EQ(to_string(PlacementStrategy::strict_spread), "STRICT_SPREAD");
  EXPECT_EQ(parse_backend("xla"), Backend::spmd);
  EXPECT_EQ(parse_backend("xla_tpu"), Backend::spmd);
  EXPECT_EQ(to_string(Backend::xla), "spmd");
}

TEST(Choices, SuggestTheNameThatIsAlike) {
  expect_error(
      Errc::invalid_argument,
      {"run.failure.restart = \"gruop\": expected \"worker\" or \"group\" or \"none\"; did "
       "you mean \"group\"?"},
      [] { parse_restart("gruop"); });
  expect_error(Errc::invalid_argument, {"backend.backend = \"smpd\"", "did you mean \"spmd\"?"},
               [] { parse_backend("smpd"); });
  expect_error(Errc::invalid_argument,
               {"scaling.placement_strategy = \"STRICTSPREAD\"", "mean \"STRICT_SPREAD\"?"},
               [] { parse_placement_strategy("STRICTSPREAD"); });
  expect_error(Errc::invalid_argument, {"run.debug = \"eagre\"", "mean \"eager\"?"},
               [] { parse_debug_mode("eagre"); });
  expect_error(Errc::invalid_argument,
               {"backend.spmd.partitioning_mode = \"manual\": expected \"auto\""},
               [] { parse_partitioning_mode("manual"); });
}

TEST(Choices, AreReadFromFlagsOfPrograms) {
  const auto parsed = [](std::string flag) {
    Choice<Restart> restart = Restart::worker;
    CLI::App app;
    app.add_option_function<std::string>(
        "--restart", [&](const std::string& text) { restart = parse_restart(text); });
    app.parse(std::move(flag));
    return restart;
  };
  EXPECT_EQ(parsed("--restart none"), Restart::none);
  expect_error(Errc::invalid_argument, {"\"nnoe\"", "did you mean \"none\"?"},
               [&] { parsed("--restart nnoe"); });
}

}  // namespace
}  // namespace weft::choices_test
