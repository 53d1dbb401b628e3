/// A program without weft that loads a plug-in: plain_host LIBRARY [REPLACEMENT]. After it has
/// loaded LIBRARY, it renames the file REPLACEMENT to LIBRARY. When it is built as
/// interposing_host, it defines weft_anchor as another version of weft would.

#include <dlfcn.h>

#include <cstdio>
#include <thread>

#include "tests/embed/hosts/line_filter.hpp"

#ifdef EMBED_INTERPOSES
extern "C" {
extern const unsigned weft_anchor __attribute__((visibility("default")));
const unsigned weft_anchor = 999;
}
#endif

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  const auto fit_line =
      library != nullptr ? reinterpret_cast<FitLine>(dlsym(library, "fit_line")) : nullptr;
  if (fit_line == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  if (argc > 2 && std::rename(argv[2], argv[1]) != 0) return 1;
  // Two jobs run at once, in threads that the plug-in hasn't made.
  double results[2] = {};
  std::jthread one([&] { results[0] = fit_line(7, 2); });
  std::jthread other([&] { results[1] = fit_line(9, 1); });
  one.join();
  other.join();
  std::printf("results %g %g\n", results[0], results[1]);
}
