/// Tests LoRA adapters that are saved apart from the model.

#include <gtest/gtest.h>

#include "tests/jobs/run_loop.hpp"
#include "tests/support/temporary_folder.hpp"

namespace weft::adapters_test {
namespace {

using testing::expect_ok;
using testing::run_loop;
using Floats = std::vector<float>;

struct Net : Module {
  Linear q_proj{*this, "q_proj", {.in_features = 3, .out_features = 2}};
  Linear head{*this, "head", {.in_features = 2, .out_features = 2}};

  Tensor operator()(const Tensor& x) const { return head(q_proj(x)); }
};

const LoRA::Options kOptions{.rank = 2, .alpha = 4, .target_modules = {"q_proj"}};

/// Trains adapters, saves them alone, and applies them to the original model.
Loop adapt{"test.adapters", [](TrainContext& ctx, const Config& config) {
             const std::string path = config.at("path");
             const Tensor x = to_device(Floats{1, 2, 3, 4, 5, 6}, {2, 3});
             Floats before, trained;
             {
               Net net;
               before = net(x).to_vector();
               const LoRA lora(net, kOptions);
               AdamW optimizer(lora.parameters(), {.lr = 0.1});
               for (int step = 0; step < 3; ++step) {
                 optimizer.step(grad(mean(net(x) * net(x)), lora.parameters()));
                 sync();
               }
               trained = net(x).to_vector();
               save(lora.parameters(), path);
             }
             Net net;
             const LoRA lora(net, kOptions);
             load(lora.parameters(), path);
             ctx.report({{"before", before},
                         {"trained", trained},
                         {"loaded", net(x).to_vector()},
                         {"first", lora.parameters()[0].name()}});
           }};

TEST(Adapters, AreSavedAloneAndLoadedIntoTheModelThatTheyAdapt) {
  const testing::TemporaryFolder folder;
  const Result result =
      run_loop(adapt, 0, {{"path", folder.path() + "/adapter_model.safetensors"}});
  ASSERT_TRUE(expect_ok(result).ok());
  EXPECT_NE(result.metrics["trained"], result.metrics["before"]);
  EXPECT_EQ(result.metrics["loaded"], result.metrics["trained"]);
  EXPECT_EQ(result.metrics["first"], "base_model.model.q_proj.lora_A.weight");
}

}  // namespace
}  // namespace weft::adapters_test
