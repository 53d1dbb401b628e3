/// Compares jobs that end at a random step and continue from a checkpoint with a job that is never
/// interrupted. WEFT_TEST_SEED=<seed> repeats one of them.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include <gtest/gtest.h>
#include <weft/weft.hpp>

#include "tests/property/seeds.hpp"
#include "tests/support/checkpoint_world.hpp"
#include "tests/support/expect_error.hpp"
#include "transport/storage/checkpoint_folder.hpp"
#include "transport/storage/state_file.hpp"

namespace weft::resume_test {
namespace {

using testing::expect_error;
using testing::seeds;
using testing::TemporaryFolder;
using Values = std::map<std::string, std::vector<std::byte>>;

constexpr std::int64_t kItems = 84;
constexpr std::int64_t kBatch = 12;  // divisible by 1 to 4 and 6 chips
constexpr std::int64_t kFeatures = 6;
constexpr std::int64_t kClasses = 4;

struct Net : Module {
  Linear fc1{*this, "fc1", {.in_features = kFeatures, .out_features = 16}};
  LayerNorm norm{*this, "norm", {.size = 16}};
  Dropout drop{*this, "drop", 0.25};
  Linear fc2{*this, "fc2", {.in_features = 16, .out_features = kClasses}};
  Tensor operator()(const Tensor& x) { return fc2(drop(norm(tanh(fc1(x))))); }
};

/// Returns a dataset whose items are randomly scaled, shifted and partly masked each time they are
/// read.
DatasetPtr augmented() {
  std::minstd_rand random(7);
  std::vector<float> x(kItems * kFeatures);
  for (float& element : x) element = static_cast<float>(random() % 1000) / 500 - 1;
  std::vector<std::int32_t> y(kItems);
  for (std::int32_t& label : y) label = static_cast<std::int32_t>(random() % kClasses);
  return map(tensors({{"x", std::move(x), {kFeatures}}, {"y", std::move(y)}}),
             {{"x", {DType::f32, {kFeatures}}}},
             [](const ItemView& in, const ItemWriter& out, ItemRandom& draws) {
               const float scale = draws.uniform(0.5F, 1.5F);
               for (std::size_t i = 0; i < kFeatures; ++i) {
                 const float noise = draws.uniform(-0.1F, 0.1F);
                 const bool is_kept = draws.below(8) != 0;
                 out.get<float>("x")[i] = is_kept ? scale * in.get<float>("x")[i] + noise : 0;
               }
             },
             {.keep = {"y"}});
}

/// The results of training.
struct Trained {
  std::map<std::uint64_t, double> losses;  ///< by the number of ended steps
  Values values;                           ///< parameters and optimizer state after the last step
};

class Resume : public ::testing::Test {
 protected:
  struct Stop {
    std::uint64_t save = 0;  ///< the step after which an async save begins; 0: none
    std::uint64_t end = 0;   ///< the last step
  };

  /// Trains from the step at which the job begins, which must be `first`, to `stop.end`.
  Trained train(std::uint64_t first, const Stop& stop, const std::vector<std::int64_t>& mesh,
                const RunConfig& config) const {
    Trained trained;
    RunConfig run = config;
    run.name = "resume";
    run.storage_path = folder_.path() + "/runs";
    const auto loop = [&](TrainContext& ctx) {
      EXPECT_EQ(ctx.step(), first);
      Net net;
      // With Adam's usual eps, the rounding error of a gradient near 0 could become a whole update.
      AdamW adam(net.parameters(), {.lr = 1e-2, .eps = 1e-3, .weight_decay = 0.1});
      mark_sharding(net.fc1.weight, *ctx.mesh(), {{"model"}, {}});
      fsdp(net, *ctx.mesh());
      DeviceLoader loader(augmented(), {.batch_size = kBatch, .shuffle = true, .num_threads = 2});
      CheckpointManager checkpoints;
      while (ctx.step() < stop.end) {
        for (const Batch& batch : loader) {
          const Tensor loss = cross_entropy(net(batch["x"]), batch["y"]);
          adam.set_lr(cosine_schedule(ctx.step(), {.lr = 1e-2, .steps = 200}));
          adam.step(grad(loss, net.parameters()));
          sync();
          trained.losses[ctx.step()] = loss.item();
          if (ctx.step() == stop.save) {
            checkpoints.save_async(state_dict(net, adam), {.force = true});
          }
          if (ctx.step() == stop.end) break;
        }
      }
      for (const Parameter& each : state_dict(net, adam)) {
        trained.values[each.name()] = each.to_bytes();
      }
    };
    const Result result =
        Trainer([&](TrainContext& ctx) { loop(ctx); },
                {.scaling = {.num_workers = 0},
                 .backend = {.spmd = {.mesh_shape = mesh, .axis_names = {"data", "model"}}},
                 .run = run})
            .fit();
    EXPECT_TRUE(result.ok()) << result.error->message;
    return trained;
  }

  /// Trains on a mesh of 2x2, saves a checkpoint at step `at`, and trains for `more` steps, which
  /// are lost. Returns the checkpoints' folder.
  std::string save_at(std::uint64_t at, std::uint64_t more) const {
    const std::string path = fmt::format("{}/saved-{}-{}", folder_.path(), at, more);
    train(0, {.save = at, .end = at + more}, {2, 2},
          {.checkpoint = {.path = path, .save_interval = 0}, .seed = 11});
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(Resume, AtARandomStepGivesTheBitsOfAStraightRun) {
  constexpr std::uint64_t kSteps = 30;
  const Trained straight = train(0, {.end = kSteps}, {2, 2}, {.seed = 11});
  ASSERT_EQ(straight.losses.size(), kSteps);
  for (const std::uint64_t seed : seeds(8)) {
    std::mt19937_64 random(seed);
    const std::uint64_t at = 1 + random() % (kSteps - 1);
    const std::uint64_t more = random() % (kSteps - at);
    SCOPED_TRACE(fmt::format("seed {}: saved at step {}, ended at {}", seed, at, at + more));
    RunConfig config{.resume = save_at(at, more), .seed = 99};
    const Trained resumed = train(at, {.end = kSteps}, {2, 2}, config);
    EXPECT_EQ(resumed.values, straight.values);
    ASSERT_EQ(resumed.losses.size(), kSteps - at);
    for (const auto& [step, loss] : resumed.losses) EXPECT_EQ(loss, straight.losses.at(step));
  }
}

/// Returns the greatest difference of the elements of two tensors, relative to the greatest
/// element.
double relative_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  std::vector<float> left(a.size() / sizeof(float));
  std::vector<float> right(left.size());
  std::memcpy(left.data(), a.data(), a.size());
  std::memcpy(right.data(), b.data(), a.size());
  double difference = 0;
  double largest = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference = std::max(difference, std::abs(double{left[i]} - double{right[i]}));
    largest = std::max(largest, std::abs(double{right[i]}));
  }
  return difference / largest;
}

TEST_F(Resume, OnAnotherMeshFollowsTheStraightRunFor100Steps) {
  constexpr std::uint64_t kStepsAfter = 100;
  std::vector<std::vector<std::int64_t>> meshes{{1, 1}, {4, 1}, {3, 1}, {1, 2}, {6, 1}, {1, 4}};
  for (const std::uint64_t seed : seeds(meshes.size())) {
    std::mt19937_64 random(seed);
    const std::uint64_t at = 1 + random() % 40;
    const std::vector<std::int64_t>& mesh = meshes[seed % meshes.size()];
    SCOPED_TRACE(
        fmt::format("seed {}: from step {} on a mesh of {}x{}", seed, at, mesh[0], mesh[1]));
    const std::uint64_t end = at + kStepsAfter;
    const Trained straight = train(0, {.end = end}, {2, 2}, {.seed = 11});
    const Trained resumed = train(at, {.end = end}, mesh, {.resume = save_at(at, 0)});
    ASSERT_EQ(resumed.losses.size(), kStepsAfter);
    for (const auto& [step, loss] : resumed.losses) {
      const double expected = straight.losses.at(step);
      EXPECT_NEAR(loss, expected, 1e-5 * expected) << "step " << step;
    }
    for (const auto& [name, bytes] : resumed.values) {
      if (name.find("correction") != name.npos) continue;  // these are f64, not f32
      EXPECT_LE(relative_difference(bytes, straight.values.at(name)), 1e-5) << name;
    }
  }
}

/// Loads a checkpoint of AdamW for a model with a new head and state of Lion.
TEST_F(Resume, PartiallyMakesWhatWasAddedAndKeepsTheStep) {
  const std::string path = save_at(3, 0);
  const auto stored = StateFile::open(path + "/checkpoint_000003");
  for (const bool is_partial : {false, true}) {
    std::vector<float> weight;
    std::uint64_t first = 0;
    const Result result =
        Trainer(
            [&](TrainContext& ctx) {
              first = ctx.step();
              Net net;
              Linear head(net, "head", {.in_features = kClasses, .out_features = 2});
              const std::vector<float> before = net.fc1.weight.to_vector();
              SGD sgd(net.parameters(), {.lr = 0.0, .momentum = 0.9});
              const Tensor x = full({kBatch, kFeatures}, 1);
              const Tensor y = head(net(x));
              sgd.step(grad(mean(y * y), net.parameters()));
              sync();
              weight = net.fc1.weight.to_vector();
              EXPECT_EQ(weight, before);
              EXPECT_EQ(ctx.step(), 4U);
            },
            {.scaling = {.num_workers = 0},
             .backend = {.spmd = {.mesh_shape = {2, 2}, .axis_names = {"data", "model"}}},
             .run = {.name = "resume",
                     .storage_path = folder_.path() + "/runs",
                     .resume = path,
                     .resume_partial = is_partial}})
            .fit();
    if (!is_partial) {
      ASSERT_FALSE(result.ok());
      EXPECT_NE(result.error->message.find("'head.weight'"), std::string::npos);
      EXPECT_NE(result.error->message.find("run.resume_partial"), std::string::npos);
      continue;
    }
    ASSERT_TRUE(result.ok()) << result.error->message;
    EXPECT_EQ(first, 3U);
    const auto found = std::ranges::find(stored->tensors(), "fc1.weight", &FileTensor::name);
    std::vector<float> saved(weight.size());
    const TensorSource::Target target{whole_box(found->shape),
                                      reinterpret_cast<std::byte*>(saved.data())};
    stored->source(static_cast<std::size_t>(found - stored->tensors().begin()), DType::f32)
        ->read({&target, 1});
    EXPECT_EQ(weight, saved);
  }
}

/// Flips one bit of each tensor in turn, at a random place.
TEST_F(Resume, AFlippedBitIsRefusedWithTheNameOfItsTensor) {
  const std::string path = save_at(3, 0);
  const std::string checkpoint = path + "/checkpoint_000003";
  const CheckpointManifest manifest = read_manifest(checkpoint);
  const auto restore = [&] {
    const Result result =
        Trainer(
            [&](TrainContext&) {
              Net net;
              AdamW adam(net.parameters(), {.lr = 1e-2});
              CheckpointManager().restore(3, state_dict(net, adam));
              for (const Parameter& each : state_dict(net, adam)) (void)each.to_bytes();
            },
            {.scaling = {.num_workers = 0},
             .backend = {.spmd = {.mesh_shape = {4, 1}, .axis_names = {"data", "model"}}},
             .run = {.name = "resume",
                     .storage_path = folder_.path() + "/runs",
                     .checkpoint = {.path = path},
                     .resume = "auto"}})
            .fit();
    return result.error;
  };
  std::mt19937_64 random(5);
  for (const StoredTensor& tensor : manifest.tensors) {
    const StoredShard& shard = tensor.shards[random() % tensor.shards.size()];
    const auto bytes =
        static_cast<std::uint64_t>(TensorType{tensor.type.dtype, shard.dims}.bytes());
    const std::uint64_t at = shard.file_offset + shard.frame_bytes - bytes + random() % bytes;
    const int bit = 1 << (random() % 8);
    const std::string file = checkpoint + "/" + manifest.files[shard.file];
    const auto flip = [&] {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(at));
      const int byte = stream.get();
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(static_cast<char>(byte ^ bit));
    };
    flip();
    const auto error = restore();
    ASSERT_TRUE(error) << tensor.name << ", byte " << at << " of " << file;
    EXPECT_EQ(error->code, Errc::corrupt) << error->message;
    for (const std::string& word : {fmt::format("'{}'", tensor.name), file}) {
      EXPECT_NE(error->message.find(word), std::string::npos) << word << " in " << error->message;
    }
    flip();
  }
  EXPECT_FALSE(restore());
}

/// Collects the warnings that this process's jobs log during the object's lifetime.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](const LogRecord& record) {
      if (record.level == LogLevel::warn) texts_.emplace_back(record.text);
    });
  }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
  ~Warnings() { set_log_sink({}); }

  std::vector<std::string> texts() const { return texts_; }

 private:
  std::vector<std::string> texts_;
};

SamplerPtr by_length(std::int64_t window_batches) {
  LengthSamplerOptions options{.batch_size = kBatch, .seed = 3, .window_batches = window_batches};
  for (std::int64_t i = 0; i < kItems; ++i) options.lengths.push_back(i * 29 % 17);
  return std::make_shared<const LengthSampler>(std::move(options));
}

class InOrder : public Stream {
 public:
  explicit InOrder(DatasetPtr source) : source_(std::move(source)) {}

  std::string name() const override { return source_->name(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }

 private:
  bool next_item(ItemMemory out) override {
    if (!skip_item()) return false;
    source_->read({index(), epoch(), 0}, out);
    return true;
  }
  bool skip_item() override { return index() < source_->size(); }
  void rewind_items() override {}

  const DatasetPtr source_;
};

/// A resumed job whose loader gives items in another order than the saved job warns of that once.
TEST_F(Resume, AnotherOrderOfItemsIsSaidOnce) {
  const auto train = [&](const DatasetPtr& data, const DeviceLoaderOptions& order,
                         const std::string& saved, bool resumes) {
    const Warnings warnings;
    const Result result = Trainer(
                              [&](TrainContext& ctx) {
                                Parameter p = make_parameter("p", std::vector<float>{0}, {});
                                DeviceLoader loader(data, order);
                                CheckpointManager checkpoints;
                                while (loader.epoch() < 2) {
                                  for (const Batch& batch : loader) {
                                    p.assign(p + mean(batch["x"]));
                                    sync();
                                    if (ctx.step() == 3)
                                      checkpoints.save(std::vector<Parameter>{p}, {.force = true});
                                    if (ctx.step() == 3 && !resumes) return;
                                  }
                                }
                              },
                              {.scaling = {.num_workers = 0},
                               .run = {.name = "resume",
                                       .storage_path = folder_.path() + "/runs",
                                       .checkpoint = {.path = folder_.path() + "/" + saved},
                                       .resume = resumes ? "auto" : "never",
                                       .seed = 11}})
                              .fit();
    EXPECT_TRUE(result.ok()) << result.error->message;
    return warnings.texts();
  };
  struct Change {
    std::string what;
    DeviceLoaderOptions before;
    DeviceLoaderOptions after;
    std::vector<std::string> words;  ///< words in the only warning; if empty, nothing is logged
    DatasetPtr data_before = augmented();
    DatasetPtr data_after = data_before;
  };
  const auto streamed = [](std::int64_t buffer, std::uint64_t seed) {
    return stream_items(shuffle_buffer(std::make_unique<InOrder>(augmented()), buffer, seed),
                        kItems);
  };
  const auto mixed = [](double share) {
    return mix({augmented(), augmented()}, {share, 1 - share}, {.size = kItems});
  };
  const auto halved = [](std::uint64_t seed) {
    return split(augmented(), {1, 1}, {.shuffle_seed = seed})[0];
  };
  const DeviceLoaderOptions in_order{.batch_size = kBatch};
  const DeviceLoaderOptions shuffled{.batch_size = kBatch, .shuffle = true};
  const std::string another = "in another order (shuffle, or another sampler)";
  const Change changes[] = {
      {"nothing", shuffled, shuffled, {}},
      {"shuffle on", in_order, shuffled, {another}},
      {"shuffle off", shuffled, in_order, {another}},
      {"seed",
       shuffled,
       {.batch_size = kBatch, .shuffle = true, .seed = 12},
       {"with seed 12;", "with seed 11"}},
      {"window", {.sampler = by_length(2)}, {.sampler = by_length(3)}, {another}},
      {"batch_size",
       shuffled,
       {.batch_size = 6, .shuffle = true},
       {"in batches of 6,", "in batches of 12,"}},
      {"the same buffer", in_order, in_order, {}, streamed(4, 3)},
      {"size of the buffer",
       in_order,
       in_order,
       {", 8, seed 3)'", ", 4, seed 3)'"},
       streamed(4, 3),
       streamed(8, 3)},
      {"seed of the buffer",
       in_order,
       in_order,
       {", 4, seed 5)'", ", 4, seed 3)'"},
       streamed(4, 3),
       streamed(4, 5)},
      {"weights", shuffled, shuffled, {"by 0.25:0.75", "by 0.5:0.5"}, mixed(0.5), mixed(0.25)},
      {"seed of a split", shuffled, shuffled, {"split("}, halved(1), halved(2)},
      {"fewer items", shuffled, shuffled, {"subset("}, augmented(), subset(augmented(), 0, 24)},
  };
  for (const Change& change : changes) {
    SCOPED_TRACE(change.what);
    EXPECT_TRUE(train(change.data_before, change.before, change.what, false).empty());
    const std::vector<std::string> warnings =
        train(change.data_after, change.after, change.what, true);
    if (change.words.empty()) {
      EXPECT_TRUE(warnings.empty()) << warnings[0];
      continue;
    }
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_NE(warnings[0].find("the DeviceLoader at resume_test.cpp:"), std::string::npos)
        << warnings[0];
    for (const std::string& word : change.words) {
      EXPECT_NE(warnings[0].find(word), std::string::npos) << word << " in " << warnings[0];
    }
  }
}

}  // namespace
}  // namespace weft::resume_test
