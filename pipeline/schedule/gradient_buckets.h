// The replicas of a stage add up their weight gradients in buckets, so that this overlaps the backward: the
// last nodes' gradients come first, and their bucket is on its way while the nodes before them are computed
// (Li et al., "PyTorch Distributed: Experiences on Accelerating Data Parallel Training", VLDB 2020).
//
//   bucket 0         the stage's last nodes
//   bucket k         the nodes before those of bucket k − 1
//   the last bucket  begins with the stage's first node
//
// Each bucket's all-reduce is an action of the schedule. It begins when the stage's last backward has passed
// the bucket's nodes on every replica, and buckets take the link one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "pipeline/schedule/schedule.h"

namespace antichain {

struct GradientBucket {
  int first = 0;  // position of its first node in the stage, whose nodes ascend
  int64_t bytes = 0;
  double share = 1;  // of the stage's weights; equal shares where there are none
  // Parts of the stage's backward, and of its weight half as an action of its own, after which the gradients
  // of the bucket are there: 1 for the last bucket.
  double of_backward = 1, of_weights = 1;
};

// Returns how many buckets a stage of these nodes gets: as many as have 256 KiB each, from 1 to 8, and no
// more than there are nodes with weights.
int bucket_count(const Profile&, const std::vector<int>& nodes);

// Returns so many buckets of about equal bytes; each has a node with weights. `count` is at most the number
// of such nodes, or 1. `times` is the profile of the stage's devices.
std::vector<GradientBucket> gradient_buckets(const Profile&, const Profile& times,
                                             const std::vector<int>& nodes, int count);
inline std::vector<GradientBucket> gradient_buckets(const Profile& profile, const std::vector<int>& nodes,
                                                    int count) {
  return gradient_buckets(profile, profile, nodes, count);
}

// Returns how many buckets one rank's list has for the stage: 1 for a plain all-reduce, 0 without any.
int buckets_in(const std::vector<Action>& of_rank, int stage);

// Returns the index of the action that completes the weight gradients which the reduce at this index adds up:
// the stage's last B or W before it, or −1 where there is none.
int last_gradient(const std::vector<Action>& of_rank, int reduce);

// Returns when the gradients are there, in seconds since the beginning of an action of `action_s` seconds
// that spends `overhead_s` before its first node. `part` is GradientBucket's.
inline double passed_s(double action_s, double overhead_s, double part) {
  return part >= 1 ? action_s : overhead_s + part * (action_s - overhead_s);
}

}  // namespace antichain
