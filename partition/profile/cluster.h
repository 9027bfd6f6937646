// A cluster describes the hardware that the planner and the simulator plan for: devices with memory, and
// links of two levels, within a node and between nodes. It comes from a file (cluster.json) or from a few
// flags.
//
// How long a device takes is said by its speed, or by a profile of its kind, because no network is 0.6 times
// as fast in every node.
//
//   node 0  [device 0]──[device 1]         within_node
//              │
//   node 1  [device 2]──[device 3]         between_nodes
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "partition/profile/profile.h"

namespace antichain {

struct Device {
  double speed = 1;          // relative: a stage profiled at t seconds takes t / speed here
  int64_t memory_bytes = 0;  // 0: unlimited
  int node = 0;
  int profile = -1;   // whose times they are: of Cluster::profiles, or the network's own
  bool host = false;  // whether tensors are in its memory anyway, so that it neither sends nor receives them
  bool operator==(const Device&) const = default;
};

// A KindProfile has the times of one network on one kind of device.
struct KindProfile {
  std::string name, file;
  std::shared_ptr<const Profile> profile;
};
// Returns them with the same done to the profile of each.
std::vector<KindProfile> changed(std::vector<KindProfile>, const std::function<Profile(const Profile&)>&);

struct Cluster {
  std::vector<Device> devices;  // empty: equal devices on one node, as many as the plan needs
  Link within_node, between_nodes;
  std::vector<KindProfile> profiles = {};

  // Returns whose times the devices of Device::profile take, divided by their speed.
  const Profile& profile(int index, const Profile& own) const {
    return index < 0 ? own : *profiles[size_t(index)].profile;
  }
  // Says whether some device's times are not the network's own, or cost it nothing to send.
  bool has_kinds() const;

  const Device& device(int index) const;  // the default device where the list is empty
  // Returns the link between two devices. A link among several devices is the slowest level that any two
  // need.
  const Link& link(int a, int b) const;
  const Link& link(std::span<const int> devices) const;
  bool links_are_free() const { return within_node.is_free() && between_nodes.is_free(); }
  bool limits_memory() const;  // whether some device's is limited
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
// A bytes_per_s of 0 means infinitely fast. "count": n repeats a node or a device. A device may have
// "host": true, and "profile": a name of the list "profiles": [{"name": "cpu", "file": "cpu.json"}, …], to
// which with_profiles() has added the text of each file. Throws Error with `origin` and the field for
// malformed JSON, unknown or missing fields, and speeds that are not positive.
Cluster cluster_from_json(const std::string& text, const std::string& origin);
std::string to_json(const Cluster&);
// Returns the text of the file with those of the profiles that it names, which are beside it. Throws Error
// naming the file that can't be read.
std::string with_profiles(const std::string& text, const std::string& origin);

}  // namespace antichain
