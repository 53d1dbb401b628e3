#pragma once
/// Scorer: the actor of the tests of actors over hosts.

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <weft/actor.hpp>

namespace weft::testing {

struct Where {
  int pid = 0;
  int parent = 0;  ///< the pid of the host's program
  int incarnation = 0;
};

class Scorer {
 public:
  explicit Scorer(weft::ActorContext& ctx) : ctx_(ctx) {}

  Where where() const { return {getpid(), getppid(), static_cast<int>(ctx_.incarnation())}; }
  /// Returns the tensor's words, each plus 1.
  weft::HostTensor plus_one(const weft::HostTensor& tensor) const {
    weft::LoanedTensor result = ctx_.loan({tensor.elements.dtype(), tensor.shape});
    std::ranges::transform(tensor.get<std::int32_t>(), result.get<std::int32_t>().begin(),
                           [](std::int32_t word) { return word + 1; });
    return std::move(result).finish();
  }
  std::vector<std::int64_t> add(const std::vector<std::int64_t>& values, std::int64_t n) const {
    std::vector<std::int64_t> sums;
    for (const std::int64_t value : values) sums.push_back(value + n);
    return sums;
  }
  void note(int sender, int number) { notes_[sender].push_back(number); }
  std::vector<int> notes(int sender) const {
    const auto found = notes_.find(sender);
    return found == notes_.end() ? std::vector<int>{} : found->second;
  }
  void take(const weft::HostTensor& tensor) { sum_ += tensor.get<std::int32_t>()[0]; }
  std::int64_t sum() const { return sum_; }
  int fail_with(const std::string& text) { throw std::runtime_error(text); }
  /// Calls the next actor of the mesh, on whichever host it is.
  int parent_of_next(int index) const {
    return ctx_.find(type(), "scorers")[index].call<&Scorer::where>().get().parent;
  }
  int parent_of(const weft::ActorRef<Scorer>& other) const {
    return other.call<&Scorer::where>().get().parent;
  }
  /// Runs until this file exists or the actor is told to stop.
  void hang(const std::string& until) {
    while (!ctx_.stop().stop_requested() && (until.empty() || ::access(until.c_str(), F_OK) != 0)) {
      std::this_thread::yield();
    }
  }
  /// Sends increasing numbers to another actor until it is told to stop. Writes each number to a
  /// file first.
  void flood(const weft::ActorRef<Scorer>& to, const std::string& path) {
    for (int i = 0; !ctx_.stop().stop_requested(); ++i) {
      std::ofstream(path) << i << '\n';
      to.tell<&Scorer::note>(0, i);
    }
  }
  /// Returns the id of the memory that the process of the actor has mapped.
  std::string memory() const {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      const std::size_t end = line.find("-actors");
      if (end != line.npos && end >= 32) return line.substr(end - 32, 32);
    }
    return "";
  }
  std::string pipe_error() const {
    try {
      ctx_.pipe<int>();
      return "";
    } catch (const weft::Error& error) {
      return error.what();
    }
  }
  std::string parameters_error() const {
    try {
      ctx_.parameters("policy");
      return "";
    } catch (const weft::Error& error) {
      return error.what();
    }
  }
  std::string attach_error(const std::string& system) const {
    try {
      weft::attach(system);
      return "";
    } catch (const weft::Error& error) {
      return error.what();
    }
  }

  using endpoints = weft::Endpoints<&Scorer::where, &Scorer::plus_one, &Scorer::add, &Scorer::note,
                                    &Scorer::notes, &Scorer::take, &Scorer::sum, &Scorer::fail_with,
                                    &Scorer::parent_of_next, &Scorer::parent_of, &Scorer::hang,
                                    &Scorer::flood, &Scorer::memory, &Scorer::pipe_error,
                                    &Scorer::parameters_error, &Scorer::attach_error>;
  static const weft::ActorType<Scorer>& type();

 private:
  weft::ActorContext& ctx_;
  std::map<int, std::vector<int>> notes_;
  std::int64_t sum_ = 0;
};

inline const ActorType<Scorer> scorer{"fault.scorer"};
inline const ActorType<Scorer>& Scorer::type() { return scorer; }

}  // namespace weft::testing
