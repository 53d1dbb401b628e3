#include "bench/training/model_training.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

namespace weft::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kBatches = 4;

}  // namespace

ModelTraining::ModelTraining(const ModelTrainingOptions& options, const Mesh& mesh)
    : options_(options),
      mesh_(mesh),
      model_(make_model(options.model, options.tiny)),
      optimizer_(model_->parameters(), {.lr = 1e-3, .weight_decay = 0.01}),
      train_(compile([this](const Tensor& x, const Tensor& labels) { return update(x, labels); })) {
  for (std::uint64_t i = 0; i < kBatches; ++i) batches_.push_back(model_->batch(i));
  if (options.state == "zero1") zero1(optimizer_, mesh);
  if (options.state == "fsdp") fsdp(*model_, mesh);
  const std::string file = options.folder + "/state.safetensors";
  if (std::filesystem::exists(file)) {
    load(*model_, file);
  } else {
    save(*model_, file);
  }
}

void ModelTraining::write_batches() const {
  std::ofstream x(options_.folder + "/x.bin", std::ios::binary);
  std::ofstream labels(options_.folder + "/labels.bin", std::ios::binary);
  const auto write = [](std::ofstream& file, const auto& elements) {
    file.write(reinterpret_cast<const char*>(elements.data()),
               static_cast<std::streamsize>(elements.size() * sizeof(elements[0])));
  };
  for (const HostBatch& batch : batches_) {
    write(x, batch.numbers);
    write(x, batch.ids);
    write(labels, batch.labels);
  }
  const auto sizes = [](const Shape& shape) {
    return std::vector<std::int64_t>(shape.begin(), shape.end());
  };
  std::ofstream(options_.folder + "/batches.json")
      << nlohmann::json{{"x", sizes(batches_[0].x_shape)},
                        {"labels", sizes(batches_[0].labels_shape)},
                        {"ids", batches_[0].numbers.empty()}};
}

TrainedSteps ModelTraining::run(int count) {
  TrainedSteps steps;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    const HostBatch& batch = batches_[step_++ % kBatches];
    const Tensor x = batch.numbers.empty() ? to_device(batch.ids, batch.x_shape)
                                           : to_device(batch.numbers, batch.x_shape);
    const Tensor labels = to_device(batch.labels, batch.labels_shape);
    for (const Tensor& tensor : {x, labels}) {
      std::vector<AxisNames> rows(static_cast<std::size_t>(tensor.shape().size()));
      rows[0] = {"data"};
      mark_sharding(tensor, mesh_, PartitionSpec(rows));
    }
    steps.losses.push_back(train_(x, labels).item());
    steps.ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return steps;
}

Tensor ModelTraining::update(const Tensor& x, const Tensor& labels) {
  const DType dtype = options_.dtype == "bf16" ? DType::bf16 : DType::f32;
  const Tensor loss = autocast(dtype, [&] { return model_->loss(x, labels); });
  optimizer_.step(grad(loss, model_->parameters()));
  return loss;
}

void expect_equal_losses(const std::string& name, const std::vector<double>& losses,
                         const std::string& peer, const std::vector<double>& of_peer,
                         double limit) {
  constexpr std::size_t kFirstSteps = 5;
  const std::size_t count = std::min({losses.size(), of_peer.size(), kFirstSteps});
  for (std::size_t i = 0; i < count; ++i) {
    if (std::abs(losses[i] / of_peer[i] - 1) <= limit) continue;
    fail(Errc::corrupt, "{}: the loss of step {} is {}, but that of {} is {}", name, i, losses[i],
         peer, of_peer[i]);
  }
}

}  // namespace weft::bench
