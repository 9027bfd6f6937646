#include "partition/profile/cluster.h"

#include <algorithm>
#include <numeric>

#include "framework/error.h"

namespace antichain {

std::vector<KindProfile> changed(std::vector<KindProfile> kinds,
                                 const std::function<Profile(const Profile&)>& change) {
  for (KindProfile& kind : kinds) kind.profile = std::make_shared<Profile>(change(*kind.profile));
  return kinds;
}

const Device& Cluster::device(int index) const {
  static const Device any;
  if (devices.empty()) return any;
  ANTICHAIN_CHECK(index >= 0 && index < int(devices.size()), "a device that is not in the cluster");
  return devices[size_t(index)];
}

const Link& Cluster::link(int a, int b) const {
  return device(a).node == device(b).node ? within_node : between_nodes;
}

const Link& Cluster::link(std::span<const int> group) const {
  const bool apart =
      std::any_of(group.begin(), group.end(), [&](int d) { return device(d).node != device(group[0]).node; });
  return apart ? between_nodes : within_node;
}

bool Cluster::limits_memory() const {
  return std::ranges::any_of(devices, [](const Device& device) { return device.memory_bytes > 0; });
}

bool Cluster::has_kinds() const {
  return std::ranges::any_of(devices, [](const Device& d) { return d.profile >= 0 || d.host; });
}

std::vector<int> Cluster::fastest(int count) const {
  std::vector<int> order(std::max(devices.size(), size_t(count)));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(), [&](int d) { return device(d).speed; });
  order.resize(size_t(count));
  return order;
}

Cluster equal_devices(int devices, const Link& link, int64_t memory_bytes) {
  return {std::vector<Device>(size_t(devices), Device{.memory_bytes = memory_bytes}), link, link};
}

Cluster one_link(const Link& link) { return {{}, link, link}; }

}  // namespace antichain
