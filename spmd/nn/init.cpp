#include "spmd/nn/init.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include <fmt/format.h>

#include <weft/ops/elementwise.hpp>

#include "spmd/program/element.hpp"
#include "spmd/program/philox.hpp"
#include "spmd/tensor/node.hpp"

namespace weft {
namespace {

/// Calls `write(first, memory, count)` for each run of elements that are contiguous both in the
/// tensor and in the target's memory.
template <typename Write>
void for_each_run(const TensorType& type, const TensorSource::Target& target, Write write) {
  const auto& [box, room] = target.placed;
  if (box.dims.num_elements() == 0) return;
  // The last dims that the box covers completely and without padding form one run, with the dim
  // before them.
  int outer = static_cast<int>(box.dims.size());
  std::int64_t count = 1;
  while (outer > 0) {
    --outer;
    count *= box.dims[outer];
    if (box.dims[outer] != type.shape[outer] || box.dims[outer] != room[outer]) break;
  }
  std::int64_t runs = 1;
  for (int dim = 0; dim < outer; ++dim) runs *= box.dims[dim];
  for (std::int64_t run = 0; run < runs; ++run) {
    std::int64_t rest = run, first = 0, place = 0, size = 1, rooms = 1;
    for (int dim = static_cast<int>(box.dims.size()) - 1; dim >= 0; --dim) {
      const std::int64_t index = dim < outer ? rest % box.dims[dim] : 0;
      if (dim < outer) rest /= box.dims[dim];
      first += (box.offsets[dim] + index) * size;
      place += index * rooms;
      size *= type.shape[dim];
      rooms *= room[dim];
    }
    write(static_cast<std::uint64_t>(first), target.memory + place * byte_size(type.dtype), count);
  }
}

/// Initial values that the training loop computes itself.
class FirstValues : public TensorSource {
 public:
  explicit FirstValues(const TensorType& type) : type_(type) {}

  /// Computes each box once, and copies it for further chips that need the same elements.
  void read(std::span<const Target> targets) const final {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const PlacedBox& placed = targets[i].placed;
      const auto same = std::ranges::find_if(targets.first(i), [&](const Target& other) {
        return other.placed.box == placed.box && other.placed.room == placed.room;
      });
      if (same != targets.begin() + static_cast<std::ptrdiff_t>(i) &&
          placed.room == placed.box.dims) {
        const TensorType part{type_.dtype, placed.room};
        std::copy_n(same->memory, part.bytes(), targets[i].memory);
      } else {
        fill(targets[i]);
      }
    }
  }
  bool is_first_value() const final { return true; }

 protected:
  virtual void fill(const Target& target) const = 0;
  const TensorType& type() const { return type_; }

 private:
  const TensorType type_;
};

class ConstantValues : public FirstValues {
 public:
  ConstantValues(const TensorType& type, double value) : FirstValues(type), value_(value) {
    store_element(type.dtype, value, element_.data());
  }
  std::uint64_t digest() const override { return stream_of(fmt::format("{} everywhere", value_)); }

 private:
  void fill(const Target& target) const override {
    const auto size = static_cast<std::size_t>(byte_size(type().dtype));
    const bool is_zero =
        std::ranges::all_of(element_, [](std::byte each) { return each == std::byte{0}; });
    for_each_run(type(), target, [&](std::uint64_t, std::byte* memory, std::int64_t count) {
      if (is_zero) {
        std::memset(memory, 0, static_cast<std::size_t>(count) * size);
        return;
      }
      for (std::int64_t i = 0; i < count; ++i, memory += size) {
        std::memcpy(memory, element_.data(), size);
      }
    });
  }

  double value_;
  std::array<std::byte, 8> element_{};
};

class MadeValues : public FirstValues {
 public:
  MadeValues(const TensorType& type, const std::string& about, MakeElements make)
      : FirstValues(type), digest_(stream_of(about)), make_(std::move(make)) {}
  std::uint64_t digest() const override { return digest_; }

 private:
  static constexpr std::int64_t kAtOnce = 1024;

  void fill(const Target& target) const override {
    std::array<float, kAtOnce> made;
    for_each_run(type(), target, [&](std::uint64_t first, std::byte* memory, std::int64_t count) {
      for (std::int64_t done = 0; done < count; done += kAtOnce) {
        const auto part = static_cast<std::size_t>(std::min(kAtOnce, count - done));
        make_(first + static_cast<std::uint64_t>(done), std::span(made).first(part));
        for (std::size_t i = 0; i < part; ++i, memory += byte_size(type().dtype)) {
          store_element(type().dtype, made[i], memory);
        }
      }
    });
  }

  const std::uint64_t digest_;
  const MakeElements make_;
};

}  // namespace

SourcePtr constant_values(const TensorType& type, double value) {
  return std::make_shared<const ConstantValues>(type, value);
}

SourcePtr made_values(const TensorType& type, const std::string& about, MakeElements make) {
  return std::make_shared<const MadeValues>(type, about, std::move(make));
}

MakeElements uniform_elements(std::string_view name, double bound) {
  return [seed = initial_seed(), stream = stream_of(name), bound = static_cast<float>(bound)](
             std::uint64_t first, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = bound * (2 * uniform(random_word(seed, stream, first + i)) - 1);
    }
  };
}

MakeElements normal_elements(std::string_view name, double mean, double standard_deviation) {
  return [=, seed = initial_seed(), stream = stream_of(name)](std::uint64_t first,
                                                              std::span<float> out) {
    // The two random numbers for an element use different Philox counters.
    const auto draw = [&](std::uint64_t counter) -> double {
      return uniform(random_word(seed, stream, counter));
    };
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double radius = std::sqrt(-2 * std::log(1 - draw(2 * (first + i))));
      const double angle = 2 * std::numbers::pi * draw(2 * (first + i) + 1);
      out[i] = static_cast<float>(mean + standard_deviation * radius * std::cos(angle));
    }
  };
}

Parameter begin_with(Parameter parameter, const std::string& about, MakeElements make) {
  TensorNode& node = *node_of(parameter);
  node.storage = made_values(node.type, about, std::move(make));
  return parameter;
}

Parameter begin_uniform(Parameter parameter, double bound) {
  const std::string about = fmt::format("uniform {} {}", initial_seed(), bound);
  return begin_with(parameter, about, uniform_elements(parameter.name(), bound));
}

}  // namespace weft
