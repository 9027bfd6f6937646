#include "pipeline/clock_offset.h"

#include <chrono>

namespace antichain {
namespace {

constexpr int round_trips = 20;

double wall_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Tensor message() { return Tensor::host({{1}, DType::f64}); }

void answer(Transport& transport) {
  const Tensor in = message(), out = message();
  for (int i = 0; i < round_trips; ++i) {
    transport.wait(transport.recv({0, i}, 0, in));
    *out.data<double>() = wall_s();
    transport.send({1, i}, 0, out);
    transport.flush();
  }
}

double ask(Transport& transport, int peer) {
  const Tensor in = message(), out = message();
  double quickest_s = 1e9, offset_s = 0;
  for (int i = 0; i < round_trips; ++i) {
    const auto ticket = transport.recv({1, i}, peer, in);
    const double start = wall_s();
    transport.send({0, i}, peer, out);
    transport.wait(ticket);
    const double end = wall_s();
    transport.flush();
    if (end - start >= quickest_s) continue;
    quickest_s = end - start;
    offset_s = *in.data<double>() - (start + end) / 2;
  }
  return offset_s;
}

}  // namespace

std::vector<double> clock_offsets(Transport& transport) {
  std::vector<double> offsets;
  for (int peer = 0; peer < transport.size(); ++peer) {
    transport.barrier();
    if (transport.rank() == 0) offsets.push_back(peer == 0 ? 0 : ask(transport, peer));
    if (transport.rank() == peer && peer > 0) answer(transport);
  }
  return offsets;
}

}  // namespace antichain
