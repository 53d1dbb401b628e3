#pragma once
/// Modules for tests of Session, and published values for them.

#include <unistd.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <weft/session.hpp>

#include "transport/published/version_writer.hpp"

namespace weft::testing {

/// Layers of several kinds, with buffers.
struct DeepNet : Module {
  Linear a{*this, "a", {12, 32}};
  BatchNorm1d norm{*this, "norm", {32}};
  Linear b{*this, "b", {32, 32}};
  LayerNorm last{*this, "last", {.size = 32}};
  Linear c{*this, "c", {32, 5}};
  Tensor operator()(const Tensor& x) const {
    return softmax(c(last(gelu(b(relu(norm(a(x))))))), -1);
  }
};

inline std::vector<Parameter> state_of(const Module& module) {
  std::vector<Parameter> all = module.parameters();
  for (const Parameter& buffer : module.buffers()) all.push_back(buffer);
  return all;
}

inline std::vector<float> row(std::int64_t count, float from = 0) {
  std::vector<float> elements;
  for (std::int64_t i = 0; i < count; ++i) {
    elements.push_back(from + static_cast<float>(i % 17) / 8 - 1);
  }
  return elements;
}

/// Publishes tensors as a job would, without a job. Element i of a tensor of version v is v + i /
/// 64 at first.
class Source {
 public:
  explicit Source(std::vector<PublishedTensor> tensors, std::uint64_t version = 1)
      : job_(next_job()), memory_(PublishedMemory::create(job_, "net", lay_out(tensors), 1)) {
    publish(version);
  }
  explicit Source(const Module& module) : Source(tensors_of(module)) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { PublishedMemory::remove(job_, "net"); }

  static std::vector<PublishedTensor> tensors_of(const Module& module) {
    std::vector<PublishedTensor> tensors;
    for (const Parameter& each : state_of(module)) {
      tensors.push_back({.name = each.name(), .type = each.type()});
    }
    return tensors;
  }
  bool publish(std::uint64_t version) {
    ++publications_;
    writer_.decide(publications_, version);
    std::byte* const place = writer_.destination(publications_, version);
    if (place == nullptr) return false;
    for (const PublishedTensor& tensor : memory_.tensors()) {
      auto* const elements = reinterpret_cast<float*>(place + tensor.offset);
      for (std::int64_t i = 0; i < tensor.type.num_elements(); ++i) elements[i] = value(version, i);
    }
    writer_.copied(publications_);
    return writer_.publish(publications_, version);
  }
  static float value(std::uint64_t version, std::int64_t i) {
    return static_cast<float>(version) / 16 + static_cast<float>(i % 64) / 64;
  }
  Parameters parameters() const { return {job_, "net"}; }
  ParameterView newest() const { return parameters().newest(); }

 private:
  static std::string next_job() {
    static int last = 0;
    return fmt::format("{:016x}{:016x}", ::getpid(), ++last);
  }

  std::string job_;
  PublishedMemory memory_;
  VersionWriter writer_{memory_, 0};
  std::uint64_t publications_ = 0;
};

/// A module of one parameter, w[2], so that results are easy to tell: x * w.
struct Scale : Module {
  explicit Scale(const std::string& name = "", Shape shape = {2}) : Module(name), w(made(shape)) {}
  Parameter made(const Shape& shape) { return add_parameter("w", 7, shape); }
  Tensor operator()(const Tensor& x) const { return x * w; }
  Parameter w;
};

inline std::vector<float> scaled(std::uint64_t version) {
  return {Source::value(version, 0), Source::value(version, 1)};
}

inline Tensor ones() { return to_device(std::vector<float>{1, 1}, {2}); }

}  // namespace weft::testing
