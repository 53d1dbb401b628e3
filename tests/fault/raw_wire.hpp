#pragma once
/// The speed of a bare wire of TLS, beside which messages between hosts are measured.

namespace weft::testing {

/// Prints the times of bytes that go to another thread and back over a wire on loopback, and the
/// rate of tensors of 16 MiB.
void print_raw_figures(int repeats);

}  // namespace weft::testing
