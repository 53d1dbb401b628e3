/// Uses actors as a user's program does, and wrongly where HIDDEN_ENDPOINT, UNNAMED_FIELDS or
/// NAMED_FIELDS is defined: check_compilers.cmake looks for the texts of these errors.

#include <weft/actor.hpp>

namespace {

struct Counter {
  explicit Counter(weft::ActorContext& /*ctx*/) {}
  void add(int n) { total += n; }
  void hidden(int n) { total += n; }
  using endpoints = weft::Endpoints<&Counter::add>;

  int total = 0;
};

struct Sixteen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p;
};
struct Seventeen {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};
struct Named {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q;
};

}  // namespace

#ifdef NAMED_FIELDS
WEFT_MESSAGE(Named, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q);
#else
WEFT_MESSAGE(Named, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p);
#endif

int main() {
  const weft::ActorRef<Counter> counter;
  counter.tell<&Counter::add>(1);
  (void)weft::MessageCodec<Sixteen>::schema();
  (void)weft::MessageCodec<Named>::schema();
#ifdef UNNAMED_FIELDS
  (void)weft::MessageCodec<Seventeen>::schema();
#endif
#ifdef HIDDEN_ENDPOINT
  counter.call<&Counter::hidden>(1).get();
  const weft::ActorMesh<Counter> counters({});
  counters.tell<&Counter::hidden>(1);
#endif
}
