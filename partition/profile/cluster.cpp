#include "partition/profile/cluster.h"

#include <algorithm>

#include "framework/error.h"

namespace antichain {

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

Cluster equal_devices(int devices, const Link& link, int64_t memory_bytes) {
  return {std::vector<Device>(size_t(devices), Device{.memory_bytes = memory_bytes}), link, link};
}

Cluster one_link(const Link& link) { return {{}, link, link}; }

}  // namespace antichain
