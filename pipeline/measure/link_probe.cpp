#include "pipeline/measure/link_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <sstream>

#include "framework/backend.h"
#include "pipeline/device/device_step.h"
#include "pipeline/device/device_streams.h"
#include "pipeline/host/median.h"
#include "pipeline/host/seconds.h"

namespace antichain {
namespace {

constexpr int64_t small_bytes = 64, large_bytes = 4 << 20;
constexpr int messages_beside_work = 4;

// Computing is what takes a millisecond or so in the core's own cache.
class Work {
 public:
  void operator()() {
    for (int pass = 0; pass < 100; ++pass)
      for (float& x : numbers_) x = 0.5f * x + 0.5f;
    sink_ = numbers_.front();
  }

 private:
  std::vector<float> numbers_ = std::vector<float>(1 << 15, 0);
  volatile float sink_ = 0;
};

// An End is one end of the link: a rank, its device and its neighbour.
class End {
 public:
  End(Transport& transport, const Context& context, int peer)
      : transport_(transport), device_(context.backend()), peer_(peer), lower_(transport.rank() < peer) {
    const DeviceStreams* streams = device_streams(device_.name());
    if (streams && streams->step) step_ = streams->step(context);
  }

  // Returns a message's median one-way seconds, of one that the neighbour answers or of two that cross. The
  // neighbour calls this too, and the other ranks do not.
  double one_way_s(int64_t bytes, int repeats, bool cross) {
    const Tensor out = device_.tensor({{bytes}, DType::u8}), in = device_.tensor({{bytes}, DType::u8});
    std::vector<double> seconds;
    for (int i = 0; i < repeats; ++i) {
      const auto start = std::chrono::steady_clock::now();
      exchange(out, in, cross);
      seconds.push_back(seconds_since(start) / (cross ? 1 : 2));
    }
    return median(seconds);
  }

  // Returns the share of its core that a rank loses while messages cross, or 0 where a device sends them. The
  // neighbour calls this, too.
  double core_share() {
    if (step_ || transport_.ordered()) return 0;
    Work work;
    std::vector<double> alone_s;
    for (int i = 0; i < 101; ++i) {
      const auto start = std::chrono::steady_clock::now();
      work();
      alone_s.push_back(seconds_since(start));
    }
    const auto tensor = [&] { return device_.tensor({{large_bytes}, DType::u8}); };
    std::vector<Transport::Ticket> tickets;
    int beside = 0;
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < messages_beside_work; ++i) {
      tickets.push_back(transport_.recv({}, peer_, tensor()));
      transport_.send({}, peer_, tensor());
    }
    for (const Transport::Ticket ticket : tickets) {
      for (; !transport_.arrived(ticket); transport_.progress()) work(), ++beside;
      transport_.wait(ticket);
    }
    transport_.flush();
    return share_of_core(alone_s, beside, seconds_since(start));
  }

 private:
  // The lower rank sends first, and the upper one answers when the message has arrived, or sends at once.
  void exchange(const Tensor& out, const Tensor& in, bool cross) {
    constexpr MessageKey key{};
    const Turn send{true, key, peer_, cross}, recv{false, key, peer_, cross};
    if (transport_.ordered()) transport_.begin_step(lower_ ? std::array{send, recv} : std::array{recv, send});
    const auto ticket = transport_.recv(key, peer_, in);
    if (lower_ || cross) transport_.send(key, peer_, out);
    transport_.wait(ticket);
    if (!lower_ && !cross) transport_.send(key, peer_, out);
    transport_.flush();
    if (step_) step_->wait();  // `wait` above makes only the device wait
  }

  Transport& transport_;
  const Backend& device_;
  const int peer_;
  const bool lower_;
  std::unique_ptr<DeviceStep> step_;  // nullptr: in host memory
};

}  // namespace

Link link_between(double small_s, double large_s, int64_t large_bytes) {
  const double transfer_s = std::max(large_s - small_s, large_s / 2);
  return {.bytes_per_s = double(large_bytes) / transfer_s, .latency_s = large_s - transfer_s};
}

double share_of_core(const std::vector<double>& alone_s, int beside, double passed_s) {
  return std::clamp(1 - beside * median(alone_s) / passed_s, 0., 1.);
}

Link measure_link(Transport& transport, const Context& context) {
  Link slowest;
  for (int low = 0; low + 1 < transport.size(); ++low) {
    transport.job().barrier();
    const bool between_hosts = transport.job().local_size() < transport.size();
    std::string mine = "0 0 0";
    if (transport.rank() == low || transport.rank() == low + 1) {
      End end(transport, context, transport.rank() == low ? low + 1 : low);
      end.one_way_s(large_bytes, 3, false);  // a warm-up: touches the memory and opens the connection
      const double small_s = end.one_way_s(small_bytes, 101, false);
      const double large_s = end.one_way_s(large_bytes, 15, true);
      mine = fmt::format("{} {} {}", small_s, large_s, between_hosts ? end.core_share() : 0);
    }
    std::istringstream in(transport.job().broadcast(mine, low));
    double small_s = 0, large_s = 0, core_share = 0;
    in >> small_s >> large_s >> core_share;
    const Link link = link_between(small_s, large_s, large_bytes);
    slowest.latency_s = std::max(slowest.latency_s, link.latency_s);
    slowest.core_share = std::max(slowest.core_share, core_share);
    if (low == 0 || link.bytes_per_s < slowest.bytes_per_s) slowest.bytes_per_s = link.bytes_per_s;
  }
  return slowest;
}

}  // namespace antichain
