#include "pipeline/link_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <vector>

#include "pipeline/median.h"
#include "pipeline/seconds.h"

namespace antichain {
namespace {

constexpr int64_t small_bytes = 64, large_bytes = 4 << 20;

// Median one-way seconds of a message between `rank` and its upper neighbour; both call it, the others do not.
double one_way_s(Transport& transport, bool lower, int peer, int64_t bytes, int repeats) {
  const Tensor out = Tensor::host({{bytes}, DType::u8}), in = Tensor::host({{bytes}, DType::u8});
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto ticket = transport.recv({0, 0}, peer, in);
    if (lower) transport.send({0, 0}, peer, out);
    transport.wait(ticket);
    if (!lower) transport.send({0, 0}, peer, out);
    transport.flush();
    seconds.push_back(seconds_since(start) / 2);
  }
  return median(seconds);
}

}  // namespace

Link link_between(double small_s, double large_s, int64_t large_bytes) {
  const double transfer_s = std::max(large_s - small_s, large_s / 2);
  return {.bytes_per_s = double(large_bytes) / transfer_s, .latency_s = large_s - transfer_s};
}

Link measure_link(Transport& transport) {
  Link slowest;
  for (int low = 0; low + 1 < transport.size(); ++low) {
    transport.barrier();
    std::string mine = "0 0";
    if (transport.rank() == low || transport.rank() == low + 1) {
      const bool lower = transport.rank() == low;
      const int peer = lower ? low + 1 : low;
      one_way_s(transport, lower, peer, large_bytes, 3);  // touches the memory and opens the connection
      const double small_s = one_way_s(transport, lower, peer, small_bytes, 101);
      const double large_s = one_way_s(transport, lower, peer, large_bytes, 15);
      mine = fmt::format("{} {}", small_s, large_s);
    }
    std::istringstream in(transport.broadcast(mine, low));
    double small_s = 0, large_s = 0;
    in >> small_s >> large_s;
    const Link link = link_between(small_s, large_s, large_bytes);
    slowest.latency_s = std::max(slowest.latency_s, link.latency_s);
    if (low == 0 || link.bytes_per_s < slowest.bytes_per_s) slowest.bytes_per_s = link.bytes_per_s;
  }
  return slowest;
}

}  // namespace antichain
