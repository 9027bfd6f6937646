// A cluster describes the hardware that the planner and the simulator plan for: devices with memory and
// relative speed, and links of two levels, within a node and between nodes. It comes from a file
// (cluster.json) or from a few flags.
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
  std::vector<Device> devices;  // empty: equal devices on one node, as many as the plan needs
  Link within_node, between_nodes;

  const Device& device(int index) const;  // the default device where the list is empty
  // Returns the link between two devices. A link among several devices is the slowest level that any two
  // need.
  const Link& link(int a, int b) const;
  const Link& link(std::span<const int> devices) const;
  bool links_are_free() const { return within_node.is_free() && between_nodes.is_free(); }
  bool limits_memory() const;    // whether some device's is limited
  double fastest_speed() const;  // of all devices
  // Returns so many devices, the fastest first; in the cluster's order those that are equally fast.
  std::vector<int> fastest(int count) const;
};

// Returns a cluster of equal devices on one node.
Cluster equal_devices(int devices, const Link&, int64_t memory_bytes = 0);
// Returns a cluster of as many equal devices as are asked for, with unlimited memory and this one link.
Cluster one_link(const Link&);

// Reads cluster.json:
//
//   {"format": "antichain cluster 1",
//    "within_node": {"bytes_per_s": 2e11, "latency_us": 3}, "between_nodes": {…},
//    "nodes": [{"devices": [{"speed": 1, "memory_bytes": 16000000000}, …]}, …]}
//
// A bytes_per_s of 0 means infinitely fast. "count": n repeats a node or a device. Throws Error with `origin`
// and the field for malformed JSON, unknown or missing fields, and speeds that are not positive.
Cluster cluster_from_json(const std::string& text, const std::string& origin);
std::string to_json(const Cluster&);

}  // namespace antichain
