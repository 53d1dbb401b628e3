/// Computes from the plan of each example what a step costs a chip, and compares the costs with the
/// texts in tests/golden/plan_cost/. A change that makes plans more expensive thus fails the test.
/// GOLDEN_UPDATE=1 rewrites these texts.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "data/files/file_bytes.hpp"
#include "spmd/plan/step_cost.hpp"
#include "tests/support/app_process.hpp"
#include "tests/support/drawn_digits.hpp"
#include "tests/support/golden.hpp"
#include "tests/support/temporary_folder.hpp"
#include "transport/format/plan_file.hpp"

namespace weft::plan_cost_test {
namespace {

using testing::AppProcess;
using testing::TemporaryFolder;

struct Example {
  std::string name;
  std::string program;
  std::vector<std::string> options;  ///< {digits} stands for a folder of drawn images
};

void PrintTo(const Example& example, std::ostream* out) { *out << example.name; }

/// Returns the examples with the sizes that the tests of these programs use.
std::vector<Example> examples() {
  const std::vector<std::string> text{"--text", LICENSE, "--batch", "16"};
  const auto with = [&](std::vector<std::string> options, const char* flag = nullptr) {
    options.insert(options.end(), text.begin(), text.end());
    if (flag != nullptr) options.emplace_back(flag);
    return options;
  };
  const std::vector<std::string> gpt{"--layers", "2", "--size",   "32",
                                     "--heads",  "4", "--length", "16"};
  return {
      {"char_gpt", CHAR_GPT, with(gpt)},
      {"char_gpt_tp", CHAR_GPT, with(gpt, "--tp")},
      {"char_gpt_fsdp", CHAR_GPT, with(gpt, "--fsdp")},
      {"digits", DIGITS, {}},
      {"gan", GAN, {"--batch", "12"}},
      {"gpt_gqa", GPT_GQA,
       with({"--size", "16", "--heads", "2", "--kv_heads", "1", "--layers", "2", "--length", "8"})},
      {"lstm_lm", LSTM_LM, with({"--size", "16", "--length", "8"})},
      {"mnist_cnn", MNIST_CNN, {"--data", "{digits}", "--batch", "32"}},
      {"moe", MOE,
       with({"--size", "16", "--heads", "2", "--length", "8", "--layers", "2", "--experts", "4"})},
      {"pipeline", PIPELINE,
       with({"--size", "16", "--heads", "2", "--length", "8", "--layers", "4"})},
      {"resnet", RESNET, {"--batch", "12", "--width", "4"}},
      {"vae", VAE, {"--batch", "12"}},
      {"vit", VIT, {"--batch", "12", "--size", "16", "--heads", "2", "--layers", "2"}},
  };
}

struct StepSum {
  std::int64_t steps = 0;
  std::int64_t executed = 0;
  StepCost cost{};
};

std::string cost_text(const Plan& plan) {
  const Mesh mesh(plan.mesh_shape, plan.axis_names);
  const std::vector<StepCost> costs = step_costs(plan, mesh);
  const std::vector<std::int64_t> counts = step_counts(plan);
  std::map<std::string, StepSum> kinds;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    std::string kind(to_string(step.kind));
    // For a loop over elementwise ops, the first op's kind isn't added, because another op may as
    // well come first.
    if (step.count > 0 && step.kind != StepKind::loop) {
      kind += fmt::format(" {}", to_string(plan.program.kind(step.first)));
    }
    for (StepSum* sum : {&kinds[kind], &kinds["~"]}) {
      ++sum->steps;
      sum->executed += counts[i];
      sum->cost.add(costs[i], counts[i]);
    }
  }
  const StepSum all = kinds.extract("~").mapped();
  std::string text = fmt::format(
      "mesh {}\n{} ops, {} bytes of temporaries (at least {} live at once), {} shared\n\n",
      mesh.to_string(), plan.program.num_ops(), plan.temp_bytes, plan.temp_bytes_bound,
      plan.shared_bytes);
  const auto add = [&](const std::string& kind, const StepSum& sum) {
    text += fmt::format("{:<34} {:>6} {:>9} {:>12} {:>11} {:>11} {:>10}\n", kind, sum.steps,
                        sum.executed, sum.cost.flops, sum.cost.read_bytes, sum.cost.written_bytes,
                        sum.cost.traffic_bytes);
  };
  text += fmt::format("{:<34} {:>6} {:>9} {:>12} {:>11} {:>11} {:>10}\n", "kind", "steps",
                      "executed", "flops", "read", "written", "traffic");
  for (const auto& [kind, sum] : kinds) add(kind, sum);
  add("all", all);
  return text;
}

class PlanCost : public ::testing::TestWithParam<Example> {};

TEST_P(PlanCost, OfTheFirstStepIsAsItWas) {
  const TemporaryFolder folder;
  std::vector<std::string> words{GetParam().program, "--workers", "2", "--chips", "2"};
  testing::draw_digits(folder.path());
  for (const std::string& word : GetParam().options) {
    words.push_back(word == "{digits}" ? folder.path() : word);
  }
  AppProcess app(words, {"WEFT_PLAN_TO=" + folder.path(), "WEFT_LOG=off", "HOME=" + folder.path()});
  app.wait();  // the step isn't run, so the program says that its job has ended
  const std::string file = folder.path() + "/first.weftplan";
  ASSERT_TRUE(std::filesystem::exists(file)) << app.output();
  const Plan plan = decode_plan(read_file_bytes(file, kPlanBytesMax));
  verify(plan, mesh_of(plan));
  EXPECT_LE(20 * plan.temp_bytes, 21 * plan.temp_bytes_bound);
  testing::expect_golden("plan_cost/" + GetParam().name + ".txt", cost_text(plan));
}

INSTANTIATE_TEST_SUITE_P(Of, PlanCost, ::testing::ValuesIn(examples()),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace weft::plan_cost_test
