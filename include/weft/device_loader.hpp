#pragma once
/// DeviceLoader: batches of a dataset, which background threads read straight into the memory of
/// the chips while the training goes on (torch_xla's MpDeviceLoader).
///
///   weft::DeviceLoader train(images, {.batch_size = 256, .shuffle = true});
///   while (train.epoch() < 10) {
///     for (const weft::Batch& batch : train) {
///       const weft::Tensor loss = weft::cross_entropy(net(batch["x"]), batch["y"]);
///       optimizer.step(weft::grad(loss, net.parameters()));
///     }  // ends the step
///   }

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include <weft/dataset.hpp>
#include <weft/partition_spec.hpp>
#include <weft/sampler.hpp>
#include <weft/tensor.hpp>

namespace weft {

struct DeviceLoaderOptions {
  std::int64_t batch_size = 1;          ///< rows of the global batch, over all chips
  bool shuffle = false;                 ///< each epoch in an order of its own
  std::optional<std::uint64_t> seed{};  ///< of the order; default: ctx.seed()
  /// The last items of an epoch, which fill no batch, are left out. If it is false there must be
  /// none: all batches have one shape.
  bool drop_last = true;
  /// Instead, they come in a batch that is filled up with zeros, and each batch has a weight().
  bool pad_last = false;
  /// Instead of an order by the five options above.
  SamplerPtr sampler{};
  /// Of every field; dim 0 is the batch. It may leave out last dims, which are whole. Default: dim
  /// 0 over axis "data", if the mesh has it.
  std::optional<PartitionSpec> input_sharding{};
  /// Of single fields, by name, instead of input_sharding.
  std::map<std::string, PartitionSpec> field_sharding{};
  int num_threads = 1;  ///< that read
  /// Batches that are read at a time, and those that lie on the chips until the loop asks for them:
  /// all take memory of the chips, and no thread reads further ahead.
  int loader_prefetch_size = 2;
  int device_prefetch_size = 2;
  /// Batches of one step: the loop's body runs so many times, then the step is ended.
  int batches_per_execution = 1;
};

/// A global batch; each chip has its rows. Copies share the tensors.
class Batch {
 public:
  /// The tensor [batch_size, ...] of a field, in the dataset's order too. Throws invalid_argument.
  const Tensor& operator[](std::string_view field) const;
  const Tensor& operator[](std::size_t field) const;
  const std::vector<Tensor>& tensors() const { return tensors_; }
  /// With pad_last, f32[batch_size]: 1 for a row of data, 0 for one that fills up. Else undefined.
  /// Losses take either as sample_weight.
  const Tensor& weight() const { return weight_; }
  /// Rows of data in the global batch: batch_size, or fewer in a batch that is filled up.
  std::int64_t num_items() const { return num_items_; }

 private:
  friend class DeviceLoader;
  std::shared_ptr<const std::vector<Field>> fields_;
  std::vector<Tensor> tensors_;
  Tensor weight_;
  std::int64_t num_items_ = 0;
};

class BatchSource;

/// Made and used by the loop; copies share the batches that are ahead. All workers must make the
/// same loaders in the same order. Which batch comes is a function of the step, so a loop that
/// begins again, after a loss or by RunConfig::resume, goes on with the batch that would have come.
class DeviceLoader {
 public:
  /// Throws not_found outside a loop; invalid_argument for options that don't fit the dataset or
  /// the mesh; no_space if the chips' memory can't hold the batches.
  DeviceLoader(DatasetPtr dataset, DeviceLoaderOptions options = {},
               std::source_location where = std::source_location::current());

  std::uint64_t batches_per_epoch() const;
  /// Steps that an epoch takes. Throws invalid_argument if batches_per_execution doesn't divide
  /// batches_per_epoch().
  std::uint64_t steps_per_epoch() const;
  /// That of the next step, ctx.step() / steps_per_epoch().
  std::uint64_t epoch() const;

  class Iterator;
  class Range;
  struct End {};
  /// The batches from that of the next step to the last one of its epoch. What follows the body
  /// ends the step, unless a sync() or a compiled function in the body has. Two steps in the time
  /// of one are an error, because a batch would be left out. What a dataset throws comes where its
  /// batch would.
  Iterator begin(std::source_location where = std::source_location::current());
  End end() const { return {}; }
  /// All batches of an epoch, whatever the step is, and ends no step: for evaluation.
  Range all(std::uint64_t epoch = 0);

 private:
  Batch take(std::uint64_t batch, std::uint64_t end);

  std::source_location where_;
  std::shared_ptr<BatchSource> source_;
  std::shared_ptr<const std::vector<Field>> fields_;
};

/// An input iterator; `*it` is valid until `++it`.
class DeviceLoader::Iterator {
 public:
  const Batch& operator*() const { return batch_; }
  const Batch* operator->() const { return &batch_; }
  Iterator& operator++();
  bool operator==(End) const { return loader_ == nullptr; }

 private:
  friend class DeviceLoader;
  Iterator(DeviceLoader& loader, std::uint64_t first, std::uint64_t end, bool ends_steps,
           std::source_location where);
  void advance();
  void end_step();

  DeviceLoader* loader_;  // null at the end
  std::uint64_t next_;    // batch
  std::uint64_t end_;     // batch
  bool ends_steps_;
  std::source_location where_;
  std::uint64_t step_ = 0;           // in which the batches are used
  std::uint64_t batch_of_step_ = 0;  // those of it that are over
  Batch batch_;
};

class DeviceLoader::Range {
 public:
  Iterator begin(std::source_location where = std::source_location::current()) const;
  End end() const { return {}; }

 private:
  friend class DeviceLoader;
  Range(DeviceLoader& loader, std::uint64_t epoch) : loader_(&loader), epoch_(epoch) {}
  DeviceLoader* loader_;
  std::uint64_t epoch_;
};

}  // namespace weft
