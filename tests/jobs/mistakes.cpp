#include "tests/jobs/mistakes.hpp"

#include <cmath>
#include <functional>
#include <map>

namespace weft::testing {
namespace {

using Floats = std::vector<float>;

Floats ones(std::int64_t size) { return Floats(static_cast<std::size_t>(size), 1.0F); }

Tensor f32(const Shape& shape, std::source_location loc = std::source_location::current()) {
  return to_device(ones(shape.num_elements()), shape, loc);
}

Tensor kept_from_another_job;

struct Twin : Module {
  Twin() : fc(*this, "fc", {.in_features = 2, .out_features = 2}) {}
  Linear fc;
};

void shapes_that_do_not_fit(TrainContext&) {
  const Tensor x = f32({4, 3});
  const Tensor y = x + f32({4, 2});
}

void layer_of_other_size(TrainContext&) {
  Twin net;
  const Tensor y = net.fc(f32({4, 3}));
}

void dtypes_that_differ(TrainContext&) {
  const Tensor x = f32({3});
  const Tensor index = to_device(std::vector<std::int32_t>{0, 1, 2}, {3});
  const Tensor y = x * index;
}

void cat_of_other_sizes(TrainContext&) {
  const std::vector<Tensor> rows{f32({2, 3}), f32({3, 2})};
  const Tensor y = cat(rows);
}

void stack_of_other_sizes(TrainContext&) {
  const std::vector<Tensor> rows{f32({2}), f32({3})};
  const Tensor y = stack(rows);
}

void mask_of_numbers(TrainContext&) {
  const Tensor x = f32({3});
  const Tensor y = masked_fill(x, x, 0.0);
}

void spec_too_short(TrainContext& ctx) {
  const Tensor x = f32({4, 2});
  mark_sharding(x, *ctx.mesh(), {{"data"}});
}

void axis_with_a_typo(TrainContext& ctx) {
  const Tensor x = f32({4, 2});
  mark_sharding(x, *ctx.mesh(), {{"dta"}, {}});
}

void batch_that_the_chips_cannot_divide(TrainContext& ctx) {
  const Tensor x = f32({5, 2});
  mark_sharding(x, *ctx.mesh(), {{"data"}, {}});
}

void rows_that_the_worker_cannot_divide(TrainContext&) {
  const Tensor x = to_device_local(ones(10), {5, 2});
}

void mesh_of_ones_own(TrainContext&) {
  const Mesh mesh({4}, {"data"});
  mark_sharding(f32({4, 2}), mesh, {{"data"}, {}});
}

void parameters_of_one_name(TrainContext&) {
  Twin teacher;
  Twin student;
  const Tensor loss = mean(teacher.fc(f32({4, 2})) - student.fc(f32({4, 2})));
  sync();
}

void gradient_after_the_sync(TrainContext&) {
  Twin net;
  const Tensor loss = mean(net.fc(f32({4, 2})));
  sync();
  const std::vector<Tensor> grads = grad(loss, net.parameters());
}

void tensor_without_a_value(TrainContext&) {
  Tensor loss;
  const Tensor doubled = loss * 2.0;
}

void tensor_of_another_job(TrainContext&) {
  const Tensor y = kept_from_another_job + 1.0;
  sync();
}

void label_out_of_range(TrainContext&) {
  const Tensor labels = to_device(std::vector<std::int32_t>{0, 10}, {2});
  const Tensor loss = cross_entropy(f32({2, 10}), labels);
  sync();
}

void loss_that_is_nan(TrainContext&) {
  const auto scope = detect_anomaly();
  const Tensor x = f32({2}) - 1.0;
  const Tensor y = log(x - 1.0);
  const Tensor loss = mean(y);
  sync();
}

void steps_of_uneven_number(TrainContext& ctx) {
  const int steps = ctx.world_rank() == 0 ? 3 : 2;
  for (int i = 0; i < steps; ++i) {
    const Tensor x = f32({4});
    mark_sharding(x, *ctx.mesh(), {{"data"}});
    const Tensor y = sum(x);
    sync();
  }
}

void value_read_by_one_worker(TrainContext& ctx) {
  const Tensor x = f32({4});
  mark_sharding(x, *ctx.mesh(), {{"data"}});
  const Tensor y = x * 2.0;
  sync();
  if (ctx.world_rank() == 0) ctx.report({{"y", y.to_vector()}});
  sync();
}

void state_loaded_by_one_worker(TrainContext& ctx) {
  const Parameter w = make_parameter("w", std::vector<float>{1, 2}, {2});
  const std::string file = ctx.run_dir() + "/w.safetensors";
  save(std::vector{w}, file);
  if (ctx.world_rank() == 0) load(std::vector{w}, file);
  const Tensor y = w * 2.0;
  sync();
}

// The moments of AdamW have 64 KiB each, so that they are sharded over both workers by default.
void optimizer_state_read_by_one_worker(TrainContext& ctx) {
  Module net("net");
  const Linear fc(net, "fc", {.in_features = 128, .out_features = 128});
  AdamW adamw(net.parameters(), {.lr = 1e-3});
  const Tensor x = f32({4, 128});
  mark_sharding(x, *ctx.mesh(), {{"data"}, {}});
  auto step = compile([&] {
    const Tensor loss = mean(fc(x));
    adamw.step(grad(loss, net.parameters()));
    return loss;
  });
  for (int i = 0; i < 3; ++i) {
    step();
    if (ctx.world_rank() == 0) adamw.state().at(0).to_vector();
  }
}

void data_that_differ(TrainContext& ctx) {
  const Floats mine(4, static_cast<float>(ctx.world_rank()));
  const Tensor x = to_device(mine, {4});
  const Tensor y = x * 2.0;
  sync();
}

void rows_of_uneven_number(TrainContext& ctx) {
  const std::int64_t rows = ctx.world_rank() == 0 ? 4 : 2;
  const Tensor x = to_device_local(ones(rows), {rows});
  const Tensor y = x * 2.0;
  sync();
}

// The following mistakes are in functions of shard_map() over the two chips of axis "data".

using P = PartitionSpec;
using Function = std::function<Tensor(const Tensor&)>;

/// Maps `fn` over the rows of a [4,2] tensor.
void over_rows(TrainContext& ctx, const Function& fn,
               std::source_location loc = std::source_location::current()) {
  (void)shard_map(fn, *ctx.mesh(), P{"data"}, P{"data"}, {}, loc)(f32({4, 2}));
}

void shard_map_axis_with_a_typo(TrainContext& ctx) {
  const auto fn = [](const Tensor& part) { return part; };
  const auto run = shard_map(fn, *ctx.mesh(), P{"dta"}, P{"data"});
  const Tensor y = run(f32({4, 2}));
}

void shard_map_spec_too_long(TrainContext& ctx) {
  const auto fn = [](const Tensor& part) { return part; };
  const auto run = shard_map(fn, *ctx.mesh(), P{{}, "data"}, P{"data"});
  const Tensor y = run(f32({4}));
}

void shard_map_specs_of_other_number(TrainContext& ctx) {
  const auto fn = [](const Tensor& a, const Tensor& b) { return a + b; };
  const auto run = shard_map(fn, *ctx.mesh(), P{"data"}, P{"data"});
  const Tensor y = run(f32({4}), f32({4}));
}

void shard_map_dim_that_the_chips_cannot_divide(TrainContext& ctx) {
  const auto fn = [](const Tensor& part) { return part; };
  const auto run = shard_map(fn, *ctx.mesh(), P{"data"}, P{"data"});
  const Tensor y = run(f32({5, 2}));
}

void shard_map_result_that_differs(TrainContext& ctx) {
  const auto fn = [](const Tensor& part) { return sum(part); };
  const auto run = shard_map(fn, *ctx.mesh(), P{"data"}, P{});
  const Tensor y = run(f32({4, 2}));
}

void shard_map_of_a_captured_batch(TrainContext& ctx) {
  const Tensor labels = f32({4, 2});
  const auto fn = [&](const Tensor& part) { return part - labels; };
  const auto run = shard_map(fn, *ctx.mesh(), P{"data"}, P{"data"});
  const Tensor y = run(f32({4, 2}));
}

void shard_map_tensor_used_outside(TrainContext& ctx) {
  Tensor kept;
  over_rows(ctx, [&](const Tensor& part) { return kept = part * 2.0; });
  const Tensor y = kept + 1.0;
}

void shard_map_value_read(TrainContext& ctx) {
  over_rows(ctx, [](const Tensor& part) {
    const double most = amax(part).item();
    return part / most;
  });
}

void shard_map_parameter_assigned(TrainContext& ctx) {
  Parameter count = make_buffer("count", 0, {});
  over_rows(ctx, [&](const Tensor& part) {
    count.assign(psum(sum(part), "data"));
    return part;
  });
}

void shard_map_carry_that_differs(TrainContext& ctx) {
  over_rows(ctx, [](const Tensor& part) {
    const auto step = [&](const Tensor& h, const Tensor&) { return std::pair(h + part, h); };
    return scan(step, full({2, 2}, 0), f32({3})).carry;
  });
}

void shard_map_axis_that_is_automatic(TrainContext& ctx) {
  const auto fn = [](const Tensor& x) { return psum(x, "data"); };
  const auto run = shard_map(fn, *ctx.mesh(), P{}, P{});
  const Tensor y = run(f32({4, 2}));
}

void collective_outside_of_shard_map(TrainContext&) {
  const Tensor x = f32({4, 2});
  const Tensor y = psum(x, "data");
}

void collective_over_an_axis_with_a_typo(TrainContext& ctx) {
  over_rows(ctx, [](const Tensor& part) { return all_gather(part, "dta"); });
}

void collective_of_a_dim_that_the_chips_cannot_divide(TrainContext& ctx) {
  over_rows(ctx, [](const Tensor& part) { return all_to_all(slice(part, 1, 0, 1), "data", 1, 0); });
}

void ppermute_to_a_chip_that_is_not_there(TrainContext& ctx) {
  over_rows(ctx, [](const Tensor& part) { return ppermute(part, "data", {{0, 1}, {1, 2}}); });
}

void ppermute_to_one_chip_twice(TrainContext& ctx) {
  over_rows(ctx, [](const Tensor& part) { return ppermute(part, "data", {{0, 1}, {1, 1}}); });
}

struct Case {
  void (*make)(TrainContext&);
  int workers;
};

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> all{
      {"shapes_that_do_not_fit", {shapes_that_do_not_fit, 0}},
      {"layer_of_other_size", {layer_of_other_size, 0}},
      {"dtypes_that_differ", {dtypes_that_differ, 0}},
      {"cat_of_other_sizes", {cat_of_other_sizes, 0}},
      {"stack_of_other_sizes", {stack_of_other_sizes, 0}},
      {"mask_of_numbers", {mask_of_numbers, 0}},
      {"spec_too_short", {spec_too_short, 0}},
      {"axis_with_a_typo", {axis_with_a_typo, 0}},
      {"batch_that_the_chips_cannot_divide", {batch_that_the_chips_cannot_divide, 0}},
      {"rows_that_the_worker_cannot_divide", {rows_that_the_worker_cannot_divide, 0}},
      {"mesh_of_ones_own", {mesh_of_ones_own, 0}},
      {"parameters_of_one_name", {parameters_of_one_name, 0}},
      {"gradient_after_the_sync", {gradient_after_the_sync, 0}},
      {"tensor_without_a_value", {tensor_without_a_value, 0}},
      {"tensor_of_another_job", {tensor_of_another_job, 0}},
      {"label_out_of_range", {label_out_of_range, 0}},
      {"loss_that_is_nan", {loss_that_is_nan, 0}},
      {"steps_of_uneven_number", {steps_of_uneven_number, 2}},
      {"value_read_by_one_worker", {value_read_by_one_worker, 2}},
      {"state_loaded_by_one_worker", {state_loaded_by_one_worker, 2}},
      {"optimizer_state_read_by_one_worker", {optimizer_state_read_by_one_worker, 2}},
      {"data_that_differ", {data_that_differ, 2}},
      {"rows_of_uneven_number", {rows_of_uneven_number, 2}},
      {"shard_map_axis_with_a_typo", {shard_map_axis_with_a_typo, 0}},
      {"shard_map_spec_too_long", {shard_map_spec_too_long, 0}},
      {"shard_map_specs_of_other_number", {shard_map_specs_of_other_number, 0}},
      {"shard_map_dim_that_the_chips_cannot_divide",
       {shard_map_dim_that_the_chips_cannot_divide, 0}},
      {"shard_map_result_that_differs", {shard_map_result_that_differs, 0}},
      {"shard_map_of_a_captured_batch", {shard_map_of_a_captured_batch, 0}},
      {"shard_map_tensor_used_outside", {shard_map_tensor_used_outside, 0}},
      {"shard_map_value_read", {shard_map_value_read, 0}},
      {"shard_map_parameter_assigned", {shard_map_parameter_assigned, 0}},
      {"shard_map_carry_that_differs", {shard_map_carry_that_differs, 0}},
      {"shard_map_axis_that_is_automatic", {shard_map_axis_that_is_automatic, 0}},
      {"collective_outside_of_shard_map", {collective_outside_of_shard_map, 0}},
      {"collective_over_an_axis_with_a_typo", {collective_over_an_axis_with_a_typo, 0}},
      {"collective_of_a_dim_that_the_chips_cannot_divide",
       {collective_of_a_dim_that_the_chips_cannot_divide, 0}},
      {"ppermute_to_a_chip_that_is_not_there", {ppermute_to_a_chip_that_is_not_there, 0}},
      {"ppermute_to_one_chip_twice", {ppermute_to_one_chip_twice, 0}},
  };
  return all;
}

}  // namespace

Loop makes_mistake{"test.makes_mistake", [](TrainContext& ctx, const Config& config) {
                     if (config["mistake"] == "none") {
                       kept_from_another_job = f32({2}) * 1.0;
                       return sync();
                     }
                     cases().at(config["mistake"]).make(ctx);
                   }};

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  for (const auto& [name, made] : cases()) all.push_back({name, made.workers});
  return all;
}

void adds_outside_a_loop() {
  const Tensor x = f32({2});
  const Tensor y = x + 1.0;
}

void asks_for_a_mesh_of_other_size() {
  TrainerOptions options{.loop_config = {{"mistake", "none"}},
                         .scaling = {.num_workers = 2, .chips_per_worker = 2},
                         .backend = {.spmd = {.mesh_shape = {2, 4}}}};
  Trainer(makes_mistake, options).fit();
}

}  // namespace weft::testing
