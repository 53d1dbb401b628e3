/// Measures calls of weft's actors. A message of up to 4 KiB contains its words; a larger one
/// contains a loaned tensor.

#include <weft/actor.hpp>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "bench/calls/calls.hpp"

namespace {

using namespace weft;
using namespace weft::bench;

constexpr std::size_t kWordsMax = 512;

/// The types of messages of 32 and of 64 bytes.
using Four = std::array<std::uint64_t, 4>;
using Eight = std::array<std::uint64_t, 8>;

std::span<const std::uint64_t> words_of(const HostTensor& tensor) {
  return {reinterpret_cast<const std::uint64_t*>(tensor.elements.data()),
          static_cast<std::size_t>(tensor.elements.size())};
}

class Summer {
 public:
  std::uint64_t four(const Four& words) const { return sum_words(words); }
  std::uint64_t some(const std::vector<std::uint64_t>& words) const { return sum_words(words); }
  std::uint64_t many(const HostTensor& words) const { return sum_words(words_of(words)); }
  void take_eight(const Eight& words) { last_ = sum_words(words); }
  void take_some(const std::vector<std::uint64_t>& words) { last_ = sum_words(words); }
  void take_many(const HostTensor& words) { last_ = sum_words(words_of(words)); }
  std::uint64_t last() const { return last_; }
  using endpoints = Endpoints<&Summer::four, &Summer::some, &Summer::many, &Summer::take_eight,
                              &Summer::take_some, &Summer::take_many, &Summer::last>;

 private:
  std::uint64_t last_ = 0;
};
const ActorType<Summer> summer{"bench.summer"};

class WeftClient final : public CallsClient {
 public:
  std::uint64_t call(std::size_t words, std::uint64_t begin) override {
    if (words == 4) {
      Four four;
      fill_words(four, begin);
      return summer_.call<&Summer::four>(four).get();
    }
    if (words <= kWordsMax) return summer_.call<&Summer::some>(filled(words, begin)).get();
    return summer_.call<&Summer::many>(loaned(words, begin)).get();
  }
  std::uint64_t stream(std::size_t words, int count) override {
    for (int i = 0; i < count; ++i) {
      if (words == 8) {
        Eight eight;
        fill_words(eight, 0);
        summer_.tell<&Summer::take_eight>(eight);
      } else if (words <= kWordsMax) {
        summer_.tell<&Summer::take_some>(filled(words, 0));
      } else {
        summer_.tell<&Summer::take_many>(loaned(words, 0));
      }
    }
    return summer_.call<&Summer::last>().get();
  }

 private:
  static std::vector<std::uint64_t> filled(std::size_t words, std::uint64_t begin) {
    std::vector<std::uint64_t> all(words);
    fill_words(all, begin);
    return all;
  }
  HostTensor loaned(std::size_t words, std::uint64_t begin) {
    LoanedTensor loan = system_.loan({DType::i64, {static_cast<std::int64_t>(words)}});
    fill_words({reinterpret_cast<std::uint64_t*>(loan.bytes().data()), words}, begin);
    return std::move(loan).finish();
  }

  ActorSystem system_{{.name = "bench"}};
  ActorRef<Summer> summer_ = system_.spawn(summer, {.place = processes(1), .own_thread = true})[0];
};

}  // namespace

int main(int argc, char** argv) {
  weft::worker_main(argc, argv);
  std::optional<WeftClient> client;
  return run_calls(argc, argv, [&]() -> CallsClient& { return client.emplace(); });
}
