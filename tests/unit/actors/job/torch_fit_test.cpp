/// Compares training on real chips with torch; tests/golden/torch/make.py writes torch's results.

#include <weft/weft.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include <fmt/format.h>

#include "tests/support/torch_training.hpp"

namespace weft::torch_fit_test {
namespace {

using testing::expect_as_torch;
using testing::TorchCase;
using testing::TorchTraining;

class TorchFit : public ::testing::TestWithParam<TorchCase> {
 protected:
  void TearDown() override { std::filesystem::remove_all(root_); }

  void expect_on(const SpmdConfig& mesh, int check_replicas_every = 0) {
    TorchTraining training;
    std::string report;
    const auto loop = [&](TrainContext& ctx) {
      training = train(GetParam(), ctx.mesh());
      report = metrics_report();
    };
    const Result result = Trainer(loop, {.scaling = {.num_workers = 0},
                                         .backend = {.spmd = mesh},
                                         .run = {.name = "torch",
                                                 .storage_path = root_,
                                                 .check_replicas_every = check_replicas_every}})
                              .fit();
    ASSERT_TRUE(result.ok()) << result.error->message;
    expect_as_torch(GetParam(), training);
    EXPECT_EQ(report.find("DonateBuffer") != report.npos, check_replicas_every == 0) << report;
  }

  const std::string root_ =
      std::filesystem::temp_directory_path() / fmt::format("weft-torch-{}", ::getpid());
};

TEST_P(TorchFit, GivesItsLossesAndParametersOnOneChip) {
  expect_on({.mesh_shape = {1}, .axis_names = {"chip"}});
}

TEST_P(TorchFit, GivesThemWithDataParallelism) {
  expect_on({.mesh_shape = {4}, .axis_names = {"data"}});
}

TEST_P(TorchFit, GivesThemWithDataAndTensorParallelism) {
  expect_on({.mesh_shape = {2, 2}, .axis_names = {"data", "model"}});
}

TEST_P(TorchFit, GivesThemWhereUpdatesLieBesideWhatTheyUpdate) {
  expect_on({.mesh_shape = {2, 2}, .axis_names = {"data", "model"}}, 1);
}

INSTANTIATE_TEST_SUITE_P(All, TorchFit, ::testing::ValuesIn(testing::torch_cases()),
                         [](const auto& which) { return which.param.name(); });

}  // namespace
}  // namespace weft::torch_fit_test
