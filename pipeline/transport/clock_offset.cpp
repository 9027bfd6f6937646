#include "pipeline/transport/clock_offset.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>

namespace antichain {
namespace {

double wall_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Tensor one_double(double value) {
  const Tensor tensor = Tensor::host({.shape = {1}, .dtype = DType::f64});
  *tensor.data<double>() = value;
  return tensor;
}

}  // namespace

double clock_offset_s(Transport& transport, const std::function<double()>& mine, int rounds) {
  double offset_s = 0, quickest_s = std::numeric_limits<double>::infinity();
  for (int peer = 1; peer < transport.size(); ++peer) {
    transport.job().barrier();
    if (transport.rank() != 0 && transport.rank() != peer) continue;
    const int other = transport.rank() == 0 ? peer : 0;
    for (int round = 0; round < rounds; ++round) {
      const Tensor got = one_double(0);
      const auto ticket = transport.recv({0, round}, other, got);
      if (transport.rank() == 0) {
        transport.wait(ticket);
        transport.send({0, round}, other, one_double(mine()));
        continue;
      }
      const double asked_s = mine();
      transport.send({0, round}, other, one_double(asked_s));
      transport.wait(ticket);
      const double answered_s = mine(), took_s = answered_s - asked_s;
      if (took_s < quickest_s) offset_s = *got.data<double>() - (asked_s + answered_s) / 2;
      quickest_s = std::min(quickest_s, took_s);
    }
    transport.flush();
  }
  return offset_s;
}

std::vector<double> clock_offsets(Transport& transport) {
  const double behind_s = clock_offset_s(transport, wall_s);
  std::vector<double> offsets_s;
  for (const std::string& text : transport.job().gather(fmt::format("{}", -behind_s)))
    offsets_s.push_back(std::stod(text));
  return offsets_s;
}

}  // namespace antichain
