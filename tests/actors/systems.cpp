#include "tests/actors/systems.hpp"

namespace weft::testing {
namespace {

/// Returns false if the loop is to end.
bool wait_for_order(const std::function<bool()>& is_ordered) {
  while (!orders().must_end && !is_ordered()) std::this_thread::yield();
  return !orders().must_end;
}

Loop publishing_loop{"test.ordered_versions", [](TrainContext& ctx) {
                       Parameter weight = make_parameter("weight", 0, {kWeights});
                       Publisher policy(ctx, "policy", {weight});
                       while (wait_for_order([&] { return ctx.step() < orders().versions; })) {
                         weight.assign(weight + 1);
                         policy.publish();
                         sync();
                       }
                     }};

Loop taking_loop{"test.ordered_rows", [](TrainContext& ctx) {
                   Parameter sum = make_parameter("sum", 0, {});
                   Publisher policy(ctx, "policy", {sum});
                   DeviceLoader batches(
                       experience(ctx, "steps", kNumbers, {.capacity = kRowCapacity}),
                       {.batch_size = 1, .device_prefetch_size = 1});
                   for (const Batch& batch : batches) {
                     const int number = batch["number"].to_vector<std::int32_t>()[0];
                     if (!wait_for_order([&] { return ctx.step() < orders().rows; })) return;
                     const std::lock_guard lock(orders().mutex);
                     orders().taken.push_back(number);
                   }
                 }};

}  // namespace

LoopOrders& orders() {
  static LoopOrders all;
  return all;
}

Job start_ordered_job(const std::string& storage, bool takes_rows) {
  orders().versions = 0;
  orders().rows = 0;
  orders().must_end = false;
  orders().taken.clear();
  return Trainer{
      takes_rows ? taking_loop : publishing_loop,
      {.scaling = {.num_workers = 0}, .run = {.name = "ordered", .storage_path = storage}}}
      .start();
}

}  // namespace weft::testing
