/// An application that doesn't call weft::worker_main(): its workers run another program, which
/// weft_add_worker() builds from the library with its loops. Usage: split_app [WORKER], where
/// WORKER replaces that program.

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tests/embed/hosts/split_loops.hpp"

int main(int argc, char** argv) {
  const auto own = std::filesystem::read_symlink("/proc/self/exe");
  const weft::Result result =
      weft::Trainer{
          split_loop,
          {.scaling = {.num_workers = 2,
                       .worker_executable = argc > 1 ? argv[1] : own.string() + "-worker"},
           .run = {.name = "split", .storage_path = std::getenv("WEFT_TEST_STORAGE")}}}
          .fit();
  std::printf("%s\n", result.ok() ? "right" : result.error->message.c_str());
}
