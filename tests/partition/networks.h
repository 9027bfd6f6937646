// This file has small networks with known shapes, and random ones, for the tests of this folder.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/error.h"
#include "partition/profile/profile.h"

namespace antichain::test {

// Adds a compute node of `forward_ns` + `backward_ns` of work.
int add(Profile&, std::vector<int> inputs, int64_t forward_ns = 1000, int64_t backward_ns = 2000,
        int64_t bytes = 100);
int add_input(Profile&);
int compute_nodes(const Profile&);  // how many are no inputs

Profile chain(int nodes);
Profile parallel_chains(int chains, int length);  // disconnected
// Returns a chain of residual blocks, each x -> a -> b -> (b + x).
Profile residual_blocks(int blocks);

// Returns cells of five pairs of branches. Each branch is a short chain on one of the two cells before, and
// they are joined at the end, as in B. Zoph, V. Vasudevan, J. Shlens, Q. V. Le, "Learning Transferable
// Architectures for Scalable Image Recognition", CVPR 2018. They have far too many antichains to list.
Profile nasnet_like(int cells, uint64_t seed);

// Returns a network of 1 to `max_nodes` nodes with several sources and sinks, disconnected parts, input nodes
// here and there, small weights (many ties, some zero), and a loss at the end now and then. It is the same on
// every platform.
Profile random_network(uint64_t seed, int max_nodes);

// Returns all down-sets of a network of at most 32 nodes, without its inputs. They ascend, so a subset comes
// before its superset.
using Mask = uint32_t;  // nodes as bits
std::vector<Mask> down_sets(const Profile&);

// This link takes one nanosecond a byte, so that transfers and work are commensurable.
inline constexpr Link byte_a_nanosecond = {.bytes_per_s = 1e9, .latency_s = 0};

// Returns the text of the Error that `f` throws, and fails the test when it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return {};
}

inline void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is missing in: " << text;
}

}  // namespace antichain::test
