/// Tests that a job refuses datasets and streams of the same form whose items differ between
/// workers.

#include <gtest/gtest.h>

#include "tests/jobs/run_loop.hpp"

namespace weft::contents_test {
namespace {

using testing::expect_ok;
using testing::run_loop;

/// A dataset whose items from `from` on are different in worker 1.
class Differing : public Dataset {
 public:
  Differing(int rank, std::int64_t from) : rank_(rank), from_(from) {}
  std::string name() const override { return "part-" + std::to_string(rank_); }
  std::int64_t size() const override { return 64; }
  const std::vector<Field>& fields() const override { return fields_; }

 private:
  void read_item(const Item& item, ItemMemory out) const override {
    const auto number = static_cast<float>(item.index);
    const bool differs = rank_ == 1 && item.index >= from_;
    const ItemWriter writer(fields_, out);
    writer.get<float>("x")[0] = number;
    writer.get<float>("y")[0] = differs ? number + 1 : number;
  }
  int rank_;
  std::int64_t from_;
  std::vector<Field> fields_{{"x", {DType::f32, {}}}, {"y", {DType::f32, {}}}};
};

void train(TrainContext& ctx, std::int64_t from) {
  Parameter w = make_parameter("w", std::vector<float>{0}, {1});
  DeviceLoader loader(std::make_shared<const Differing>(ctx.world_rank(), from), {.batch_size = 8});
  for (const Batch& batch : loader) w.assign(w + sum(batch["x"] * batch["y"]));
}

/// A stream of the same items.
class DifferingStream : public Stream {
 public:
  DifferingStream(int rank, std::int64_t from) : items_(rank, from) {}
  std::string name() const override { return items_.name(); }
  const std::vector<Field>& fields() const override { return items_.fields(); }

 private:
  bool next_item(ItemMemory out) override {
    if (!skip_item()) return false;
    items_.read({.index = index(), .epoch = epoch()}, out);
    return true;
  }
  bool skip_item() override { return index() < items_.size(); }
  void rewind_items() override {}

  Differing items_;
};

void train_on_stream(TrainContext& ctx, std::int64_t from) {
  Parameter w = make_parameter("w", std::vector<float>{0}, {1});
  auto stream = std::make_unique<DifferingStream>(ctx.world_rank(), from);
  DeviceLoader loader(stream_items(std::move(stream), 64), {.batch_size = 8});
  for (const Batch& batch : loader) w.assign(w + sum(batch["x"] * batch["y"]));
}

Loop stream_differs{"test.stream_differs", [](TrainContext& ctx) { train_on_stream(ctx, 8); }};
Loop stream_agrees{"test.stream_agrees", [](TrainContext& ctx) { train_on_stream(ctx, 64); }};
Loop differs{"test.contents_differ", [](TrainContext& ctx) { train(ctx, 0); }};
Loop differs_later{"test.contents_later", [](TrainContext& ctx) { train(ctx, 8); }};
Loop agrees{"test.contents_agree", [](TrainContext& ctx) { train(ctx, 64); }};

void expect_refused(const Result& result, std::initializer_list<const char*> words) {
  ASSERT_FALSE(result.ok());
  for (const char* word : words) {
    EXPECT_NE(result.error->message.find(word), std::string::npos)
        << word << " isn't in " << result.error->message;
  }
}

TEST(Contents, OfTheFirstBatchAreCompared) {
  expect_refused(run_loop(differs, 2),
                 {"at step 0 field 'y' f32[] of item 0, the first of batch 0 of epoch 0",
                  "contents_test.cpp:", "of dataset part-0,", "worker 0 against worker 1",
                  "WEFT_CHECK_DATA=0"});
}

TEST(Contents, OfLaterBatchesAreCompared) {
  expect_refused(run_loop(differs_later, 2), {"field 'y'", "of item 8, the first of batch 1"});
}

TEST(Contents, ThatAgreeAreLeftAlone) { expect_ok(run_loop(agrees, 2)); }

TEST(Contents, OfStreamsAreCompared) {
  expect_refused(run_loop(stream_differs, 2),
                 {"field 'y'", "of item 8, the first of batch 1", "part-0"});
  expect_ok(run_loop(stream_agrees, 2));
}

}  // namespace
}  // namespace weft::contents_test
