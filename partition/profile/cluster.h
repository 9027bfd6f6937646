// A cluster is the hardware as the planner and the simulator see it: devices with memory and relative speed,
// and links of two levels, within a node and between nodes. It is a file (cluster.json), or a few flags.
//
//   node 0  [device 0]──[device 1]         within_node
//              │
//   node 1  [device 2]──[device 3]         between_nodes
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

struct Device {
  double speed = 1;          // relative: a stage profiled at t seconds takes t / speed here
  int64_t memory_bytes = 0;  // 0: unlimited
  int node = 0;
  bool operator==(const Device&) const = default;
};

struct Cluster {
  std::vector<Device> devices;  // empty: as many equal ones, on one node, as a plan asks for
  Link within_node, between_nodes;

  const Device& device(int index) const;  // of an empty list: the default device
  // The link between two devices; among several: the slowest level that any two of them need.
  const Link& link(int a, int b) const;
  const Link& link(std::span<const int> devices) const;
};

// Equal devices on one node.
Cluster equal_devices(int devices, const Link&, int64_t memory_bytes = 0);
// As many devices as are asked for, all alike, unlimited memory.
Cluster one_link(const Link&);

// {"format": "antichain cluster 1",
//  "within_node": {"bytes_per_s": 2e11, "latency_us": 3}, "between_nodes": {…},       bytes_per_s 0:
//                                                                                     infinitely fast
//  "nodes": [{"devices": [{"speed": 1, "memory_bytes": 16000000000}, …]}, …]}         "count": n repeats a
//                                                                                     node or device
// Error with `origin` and the field: malformed JSON, unknown or missing fields, speeds that are not positive.
Cluster cluster_from_json(const std::string& text, const std::string& origin);
std::string to_json(const Cluster&);

}  // namespace antichain
